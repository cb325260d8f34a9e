//! The handwritten digits: reading, checking, and holding some of them out.

use std::fs;
use std::io::Read;
use std::path::Path;

use autograd_core::Tensor;
use flate2::read::MultiGzDecoder;

use crate::failure::Failure;

/// The side of an image.
pub const SIDE: usize = 8;
/// The number of pixels of an image.
pub const PIXELS: usize = SIDE * SIDE;
/// The ten digits.
pub const CLASSES: usize = 10;
/// The value of the darkest pixel.
const DARKEST: u8 = 16;

/// Alpaydin and Kaynak 1998; see `examples/data/README.md` for source and licence.
const SHIPPED: &[u8] = include_bytes!("../../data/digits.csv.gz");
/// The first two bytes of every gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Images and their labels.
pub struct Digits {
    /// `[n, 64]`, each pixel from 0 (paper) to 1 (ink).
    pub images: Tensor,
    /// `[n]`, each from 0 to 9.
    pub labels: Tensor<i64>,
}

impl Digits {
    /// Loads the images from a file, or those that come with the program.
    pub fn load(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return parse(&unpack(SHIPPED)?) };
        let failure = |why: String| Failure::Data(format!("{}: {why}", path.display()));
        let bytes = fs::read(path).map_err(|error| failure(error.to_string()))?;
        let text = unpack(&bytes).map_err(|error| failure(error.to_string()))?;
        parse(&text).map_err(|error| failure(error.to_string()))
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The given rows, in order.
    pub fn pick(&self, rows: &Tensor<i64>) -> Self {
        let images = self.images.index_select(0, rows);
        let labels = self.labels.index_select(0, rows);
        Self { images, labels }
    }

    /// Five copies of each image: unchanged, and moved by half a pixel in each direction.
    pub fn nudged(&self) -> Self {
        let images = self.images.reshape([self.len(), SIDE, SIDE]);
        let five = [
            images.clone(),
            nudge(&images, 1, false),
            nudge(&images, 1, true),
            nudge(&images, 2, false),
            nudge(&images, 2, true),
        ];
        Self {
            images: Tensor::concat(&five.each_ref(), 0).reshape([5 * self.len(), PIXELS]),
            labels: Tensor::concat(&[&self.labels; 5], 0),
        }
    }

    /// Splits the images: every `n`th image of each digit is held out for the exam, the others are
    /// for training. The split is the same in every run, whatever the seed.
    pub fn hold_back_every(&self, n: usize) -> (Self, Self) {
        let labels = self.labels.to_vec();
        let mut rows: Vec<usize> = (0..self.len()).collect();
        rows.sort_by_key(|&row| labels[row]);
        let (mut exam, mut lessons) = (vec![], vec![]);
        for (i, &row) in rows.iter().enumerate() {
            if i % n == n - 1 { &mut exam } else { &mut lessons }.push(row as i64);
        }
        lessons.sort_unstable();
        exam.sort_unstable();
        (self.pick(&lessons.into()), self.pick(&exam.into()))
    }
}

/// Images `[n, 8, 8]` moved along an axis: each pixel becomes the mean of it and its neighbour.
fn nudge(images: &Tensor, axis: isize, back: bool) -> Tensor {
    let paper = images.narrow(axis, 0, 1) * 0.0;
    let neighbours = if back {
        Tensor::concat(&[&images.narrow(axis, 1, SIDE - 1), &paper], axis)
    } else {
        Tensor::concat(&[&paper, &images.narrow(axis, 0, SIDE - 1)], axis)
    };
    (images + neighbours) * 0.5
}

fn unpack(bytes: &[u8]) -> Result<String, Failure> {
    let mut text = Vec::new();
    if bytes.starts_with(&GZIP) {
        MultiGzDecoder::new(bytes)
            .read_to_end(&mut text)
            .map_err(|error| Failure::Data(format!("not a whole gzip file: {error}")))?;
    } else {
        text.extend_from_slice(bytes);
    }
    String::from_utf8(text).map_err(|_| Failure::Data("neither gzip nor text".into()))
}

fn parse(text: &str) -> Result<Digits, Failure> {
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let failure = |why: String| Failure::Data(format!("line {}: {why}", i + 1));
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [ink @ .., digit] = &cells[..] else { continue };
        if ink.len() != PIXELS {
            let found = if line.trim().is_empty() { 0 } else { cells.len() };
            return Err(failure(format!("{} numbers expected, found {found}", PIXELS + 1)));
        }
        for (column, cell) in ink.iter().enumerate() {
            let pixel = number(cell, DARKEST)
                .map_err(|why| failure(format!("pixel {} {why}", column + 1)))?;
            pixels.push(f32::from(pixel) / f32::from(DARKEST));
        }
        let digit =
            number(digit, CLASSES as u8 - 1).map_err(|why| failure(format!("digit {why}")))?;
        labels.push(i64::from(digit));
    }
    if labels.len() < CLASSES {
        let found = labels.len();
        return Err(Failure::Data(format!("at least {CLASSES} images expected, found {found}")));
    }
    let images = Tensor::from_vec([labels.len(), PIXELS], pixels)?;
    Ok(Digits { images, labels: labels.into() })
}

fn number(cell: &str, most: u8) -> Result<u8, String> {
    let wrong = || format!("must be a whole number from 0 to {most}, found `{cell}`");
    cell.parse().ok().filter(|&n| n <= most).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(digit: usize) -> String {
        format!("{}{digit}\n", "0,16,".repeat(PIXELS / 2))
    }

    fn sheet() -> String {
        (0..20).map(|i| line(i % CLASSES)).collect()
    }

    fn refusal(text: &str) -> String {
        parse(text).err().map_or_else(|| "taken".into(), |error| error.to_string())
    }

    #[test]
    fn the_shipped_digits_are_whole() {
        let digits = Digits::load(None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(digits.images.shape(), [1797, PIXELS]);
        assert_eq!(digits.labels.to_vec()[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
        assert_eq!((digits.images.min().item(), digits.images.max().item()), (0.0, 1.0));
        let (lessons, exam) = digits.hold_back_every(5);
        assert_eq!((lessons.len(), exam.len()), (1438, 359));
        for digit in 0..CLASSES as i64 {
            let n = exam.labels.eq_scalar(digit).cast::<i64>().sum().item();
            assert!((35..=37).contains(&n), "{n} images of {digit} are held back");
        }
    }

    #[test]
    fn images_and_labels_stay_together() {
        let digits = parse(&sheet()).unwrap_or_else(|error| panic!("{error}"));
        let picked = digits.pick(&Tensor::from([13, 4]));
        assert_eq!(picked.labels.to_vec(), [3, 4]);
        assert_eq!(picked.images.at(&[1, 3]), 1.0);
    }

    #[test]
    fn nudged_images_keep_their_labels() {
        let mut dot = vec![0.0; 2 * PIXELS];
        dot[PIXELS + SIDE + 2] = 1.0;
        let images = Tensor::from_vec([2, PIXELS], dot).unwrap_or_else(|error| panic!("{error}"));
        let nudged = Digits { images, labels: Tensor::from([3, 4]) }.nudged();
        assert_eq!(nudged.labels.to_vec(), [3, 4, 3, 4, 3, 4, 3, 4, 3, 4]);
        let ink = |row: usize| -> Vec<(usize, f32)> {
            let image = nudged.images.select(0, row).to_vec();
            image.into_iter().enumerate().filter(|&(_, ink)| ink > 0.0).collect()
        };
        assert_eq!(ink(1), [(10, 1.0)]);
        assert_eq!(ink(3), [(10, 0.5), (18, 0.5)]);
        assert_eq!(ink(5), [(2, 0.5), (10, 0.5)]);
        assert_eq!(ink(7), [(10, 0.5), (11, 0.5)]);
        assert_eq!(ink(9), [(9, 0.5), (10, 0.5)]);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let with = |third: &str| {
            sheet().lines().enumerate().fold(String::new(), |text, (i, line)| {
                text + if i == 2 { third } else { line } + "\n"
            })
        };
        let range = "must be a whole number from 0 to";
        for (text, message) in [
            (String::new(), "at least 10 images expected, found 0".to_owned()),
            (line(1), "at least 10 images expected, found 1".to_owned()),
            (with(""), "line 3: 65 numbers expected, found 0".to_owned()),
            (with("1,2,3"), "line 3: 65 numbers expected, found 3".to_owned()),
            (
                with(&line(1).replace("16,1", "17,1")),
                format!("line 3: pixel 64 {range} 16, found `17`"),
            ),
            (
                with(&line(1).replacen('0', "-1", 1)),
                format!("line 3: pixel 1 {range} 16, found `-1`"),
            ),
            (
                with(&line(1).replacen("16", "ink", 1)),
                format!("line 3: pixel 2 {range} 16, found `ink`"),
            ),
            (with(line(10).trim()), format!("line 3: digit {range} 9, found `10`")),
        ] {
            assert_eq!(refusal(&text), message);
        }
    }

    #[test]
    fn spaces_and_windows_line_ends_are_no_mistake() {
        assert_eq!(refusal(&sheet().replace(',', ", ").replace('\n', "\r\n")), "taken");
    }

    #[test]
    fn files_that_are_neither_text_nor_gzip_are_refused() {
        let refusal = |bytes: &[u8]| unpack(bytes).err().map(|error| error.to_string());
        assert_eq!(refusal(&[0xff, 0xfe, 0]).as_deref(), Some("neither gzip nor text"));
        assert!(refusal(&SHIPPED[..1000]).is_some_and(|m| m.starts_with("not a whole gzip file")));
        assert_eq!(refusal(SHIPPED), None);
    }
}
