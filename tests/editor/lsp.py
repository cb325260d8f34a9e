"""A client of rust-analyzer, for one file of a crate that depends on the library of this repository."""

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MANIFEST = """[package]
name = "edited"
version = "0.0.0"
edition = "2024"
[dependencies]
autograd-core = {{ path = "{root}/autograd-core" }}
ndarray = "0.17"
[workspace]
"""


class Editor:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory()
        crate = Path(self.folder.name)
        (crate / "src").mkdir()
        (crate / "Cargo.toml").write_text(MANIFEST.format(root=ROOT))
        shutil.copy(ROOT / "Cargo.lock", crate)
        path = crate / "src/main.rs"
        path.write_text("fn main() {}\n")
        self.uri = path.as_uri()
        environment = dict(os.environ, CARGO_TARGET_DIR=str(ROOT / "target/editor"))
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [program], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=crate, env=environment
        )
        self.answers, self.count, self.version, self.ready = {}, 0, 1, False
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        capabilities = {
            "textDocument": {
                "completion": {"completionItem": {"snippetSupport": False}},
                "hover": {"contentFormat": ["markdown"]},
                "definition": {"linkSupport": True},
                "rename": {"prepareSupport": True},
            },
            "workspace": {"configuration": True, "workspaceEdit": {"documentChanges": True}},
            "experimental": {"serverStatusNotification": True},
        }
        self.config = {"checkOnSave": False, "cachePriming": {"enable": False}}
        folders = [{"uri": crate.as_uri(), "name": "edited"}]
        self.ask(
            "initialize",
            processId=os.getpid(),
            rootUri=crate.as_uri(),
            workspaceFolders=folders,
            capabilities=capabilities,
            initializationOptions=self.config,
        )
        self._notify("initialized")
        self.text = "fn main() {}\n"
        document = {"uri": self.uri, "languageId": "rust", "version": 1, "text": self.text}
        self._notify("textDocument/didOpen", textDocument=document)
        with self.changed:
            if not self.changed.wait_for(lambda: self.ready, timeout=1800):
                raise TimeoutError("rust-analyzer has not loaded the crate")

    def _send(self, message):
        body = json.dumps(dict(message, jsonrpc="2.0")).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _notify(self, method, **params):
        self._send({"method": method, "params": params})

    def _read(self):
        while header := self.process.stdout.readline():
            length = 0
            while header.strip():
                if header.lower().startswith(b"content-length"):
                    length = int(header.split(b":")[1])
                header = self.process.stdout.readline()
            message = json.loads(self.process.stdout.read(length))
            with self.changed:
                if "method" not in message:
                    self.answers[message["id"]] = message
                elif "id" in message:
                    items = message["params"].get("items", [])
                    asked = message["method"] == "workspace/configuration"
                    result = [self.config for _ in items] if asked else None
                    self._send({"id": message["id"], "result": result})
                elif message["method"] == "experimental/serverStatus":
                    self.ready = self.ready or message["params"]["quiescent"]
                self.changed.notify_all()

    def ask(self, method, **params):
        """The result of a request; repeated if the file changed meanwhile."""
        while True:
            self.count += 1
            number = self.count
            self._send({"id": number, "method": method, "params": params})
            with self.changed:
                if not self.changed.wait_for(lambda: number in self.answers, timeout=300):
                    raise TimeoutError(method)
                answer = self.answers.pop(number)
            if answer.get("error", {}).get("code") not in (-32801, -32802):
                return answer.get("result")
            time.sleep(0.5)

    def write(self, text):
        self.version, self.text = self.version + 1, text
        document = {"uri": self.uri, "version": self.version}
        self._notify("textDocument/didChange", textDocument=document, contentChanges=[{"text": text}])

    def at(self, offset):
        before = self.text[:offset]
        position = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        return {"textDocument": {"uri": self.uri}, "position": position}

    def place(self, found):
        """The offset of a position in the file."""
        lines = self.text.split("\n")[: found["line"]]
        return sum(len(line) + 1 for line in lines) + found["character"]

    def completions(self, text):
        """The names that are offered at the `$0` of a text."""
        self.write(text.replace("$0", ""))
        answer = self.ask("textDocument/completion", **self.at(text.index("$0")))
        items = answer["items"] if isinstance(answer, dict) else answer or []
        return {item["label"].split("(")[0].split("!")[0].split(" ")[0].split(":")[0] for item in items}

    def hover(self, offset):
        answer = self.ask("textDocument/hover", **self.at(offset))
        return answer["contents"]["value"] if answer else ""

    def definition(self, offset):
        """The offset of the first target; `None` if it is in another file."""
        targets = self.ask("textDocument/definition", **self.at(offset)) or [{}]
        if targets[0].get("targetUri") != self.uri:
            return None
        return self.place(targets[0]["targetSelectionRange"]["start"])

    def rename(self, offset):
        """The offsets of what a rename changes."""
        answer = self.ask("textDocument/rename", newName="renamed", **self.at(offset)) or {}
        edits = [edit for change in answer.get("documentChanges", []) for edit in change.get("edits", [])]
        return sorted(self.place(edit["range"]["start"]) for edit in edits)

    def diagnostics(self):
        answer = self.ask("textDocument/diagnostic", textDocument={"uri": self.uri})
        return [item["message"] for item in answer["items"]]

    def close(self):
        self.ask("shutdown")
        self._notify("exit")
        self.process.wait(30)
        self.folder.cleanup()
