//! The thread that sums buckets while the walk goes on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::buckets::{Numbers, Spare};
use crate::call::Calls;
use crate::error::Result;

/// Sums buckets in the order in which they are sent.
pub(crate) struct Reducer {
    jobs: Option<Sender<(usize, Numbers)>>,
    done: Receiver<(usize, Numbers, Result<()>)>,
    thread: Option<JoinHandle<()>>,
}

impl Reducer {
    pub(crate) fn start(calls: Arc<Calls>) -> Self {
        let (jobs, received) = channel::<(usize, Numbers)>();
        let (send, done) = channel();
        let thread = thread::spawn(move || {
            let mut spare = Spare::default();
            let mut result = Ok(());
            for (at, mut numbers) in received {
                // After an error the ranks are not at the same call any more.
                result = result.and_then(|()| numbers.sum(&calls, at, &mut spare));
                let result = result.clone();
                if send.send((at, numbers, result)).is_err() {
                    return;
                }
            }
        });
        Self { jobs: Some(jobs), done, thread: Some(thread) }
    }

    /// Sends a bucket; `None` if the thread has ended.
    pub(crate) fn send(&self, at: usize, numbers: Numbers) -> Option<()> {
        self.jobs.as_ref()?.send((at, numbers)).ok()
    }

    /// Waits for the next bucket; `None` if the thread has ended.
    pub(crate) fn receive(&self) -> Option<(usize, Numbers, Result<()>)> {
        self.done.recv().ok()
    }
}

impl Drop for Reducer {
    fn drop(&mut self) {
        self.jobs.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}
