"""A double of the Hub on the loopback: the endpoints that huggingface_hub calls, with repositories in memory."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import huggingface_hub.constants
import transformers.utils.hub
import yaml

TOKEN = "hf_" + "PlantedTokenOfTheHubDouble" + "x" * 8  # in two parts: no file may look as if it held a token
LFS_SUFFIXES = (".safetensors", ".bin", ".pt", ".pkl", ".model", ".parquet")
TYPE = r"(?P<type>model|dataset|space)s"
REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
ROUTES = [  # method, path, name of the handler's method
    ("POST", "/api/repos/create", "create"),
    ("POST", "/api/validate-yaml", "validate_yaml"),
    ("POST", rf"/api/{TYPE}/{REPO}/preupload/(?P<revision>[^/]+)", "preupload"),
    ("POST", rf"/api/{TYPE}/{REPO}/commit/(?P<revision>[^/]+)", "commit"),
    ("POST", rf"/api/{TYPE}/{REPO}/branch/(?P<branch>[^/]+)", "branch"),
    ("GET", rf"/api/{TYPE}/{REPO}/tree/(?P<revision>[^/]+)/?(?P<path>.*)", "tree"),
    ("GET", rf"/api/{TYPE}/{REPO}/revision/(?P<revision>[^/]+)", "info"),
    ("GET", rf"/api/{TYPE}/{REPO}", "info"),
    ("POST", rf"/((?P<type>dataset|space)s/)?{REPO}\.git/info/lfs/objects/batch", "lfs_batch"),
    ("PUT", r"/lfs-objects/(?P<oid>\w{64})", "lfs_upload"),
    ("GET", r"/lfs-objects/(?P<oid>\w{64})", "lfs_download"),
    ("HEAD", r"/lfs-objects/(?P<oid>\w{64})", "lfs_download"),
    ("POST", "/lfs-verify", "lfs_verify"),
    ("GET", rf"/((?P<type>dataset|space)s/)?{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "resolve"),
    ("HEAD", rf"/((?P<type>dataset|space)s/)?{REPO}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "resolve"),
]


@dataclass
class Repository:
    """Commits (oid -> files: path -> content) and references (branch -> oid)."""

    private: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)

    def add_commit(self, reference: str, files: dict[str, bytes]) -> str:
        oid = hashlib.sha1(f"{id(self)} {len(self.commits)}".encode()).hexdigest()
        self.commits[oid], self.references[reference] = files, oid
        return oid

    def oid(self, revision: str) -> str | None:
        return revision if revision in self.commits else self.references.get(revision)

    def files(self, revision: str = "main") -> dict[str, bytes]:
        return self.commits[self.references.get(revision, revision)]


class HubDouble(ThreadingHTTPServer):
    """Serves until it is shut down; `repositories` by name, `requests` as (method, path, with a token or not)."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, bool]] = []


@contextmanager
def hub_double() -> Iterator[HubDouble]:
    server = HubDouble()
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def environment(server: HubDouble, home) -> dict[str, str]:
    """Of a process that takes the double for the Hub. Uploads go by LFS: Xet is a protocol of its own, in Rust."""
    names = {"HF_ENDPOINT": server.endpoint, "HF_TOKEN": TOKEN, "HF_HOME": str(home)}
    return names | {"HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_TELEMETRY": "1"}


def use(server: HubDouble, home, monkeypatch) -> None:
    """The same for this process, where huggingface_hub has read its environment already."""
    constants = huggingface_hub.constants
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    for name, value in {
        "ENDPOINT": server.endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": server.endpoint + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_XET_CACHE": str(home / "xet"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr(huggingface_hub.hf_api.api, "endpoint", server.endpoint)
    monkeypatch.setattr(transformers.utils.hub, "_hf_api", None)


def blob_id(path: str, content: bytes) -> str:
    """As the Hub has it: sha256 of a large file, git's sha1 of another one."""
    if path.endswith(LFS_SUFFIXES):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """One request; methods are named in `ROUTES` and get what the path says."""

    protocol_version = "HTTP/1.1"

    def dispatch(self):
        self.body = self.read_body()
        address = urlsplit(self.path)
        self.query = parse_qs(address.query)
        self.authorized = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        self.server.requests.append((self.command, self.path, self.authorized))
        for method, pattern, name in ROUTES:
            match = re.fullmatch(pattern, address.path)
            if method == self.command and match:
                parts = {name: unquote(part) for name, part in match.groupdict().items() if part is not None}
                if method == "POST" and not self.authorized and name != "validate_yaml":
                    return self.refuse(401, "Invalid username or password.")
                return self.routed(name, parts)
        self.refuse(404, f"no endpoint {self.command} {address.path}")

    do_GET = do_HEAD = do_POST = do_PUT = dispatch  # noqa: N815

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size + 2)[:-2]
        self.rfile.readline()
        return body

    def routed(self, name: str, parts: dict[str, str]):
        """The handler's method, with the repository and its files in place of their names."""
        kind = parts.pop("type", "model")
        if "repo" in parts:
            self.repo_id = parts.pop("repo")
            self.name = self.repo_id if kind == "model" else f"{kind}s/{self.repo_id}"
            self.repository = self.server.repositories.get(self.name)
            if self.repository is None or (self.repository.private and not self.authorized):
                return self.refuse(404, "Repository not found", "RepoNotFound")
        if "revision" in parts:
            self.revision = parts.pop("revision")
            if self.repository.oid(self.revision) is None:
                return self.refuse(404, f"Invalid rev id: {self.revision}", "RevisionNotFound")
            self.files = self.repository.files(self.repository.oid(self.revision))
        getattr(self, name)(**parts)

    def answer(self, value, status: int = 200, headers: dict | None = None):
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def refuse(self, status: int, message: str, code: str = ""):
        self.answer({"error": message}, status, {"X-Error-Message": message, "X-Error-Code": code})

    def log_message(self, *arguments):
        pass

    def create(self):
        asked = json.loads(self.body)
        repo_id = f"{asked.get('organization') or 'someone'}/{asked['name']}"
        kind = asked.get("type", "model")
        name = repo_id if kind == "model" else f"{kind}s/{repo_id}"
        url = {"url": f"{self.server.endpoint}/{name}", "name": repo_id}
        if name in self.server.repositories:
            return self.answer(url | {"error": "You already created this repo"}, 409)
        private = asked.get("visibility") == "private" or asked.get("private", False)  # from 2.0 on, before
        repository = self.server.repositories[name] = Repository(bool(private))
        repository.add_commit("main", {".gitattributes": b"*.safetensors filter=lfs\n"})
        self.answer(url)

    def info(self):
        revision = getattr(self, "revision", "main")
        siblings = [{"rfilename": path} for path in self.repository.files(self.repository.oid(revision))]
        about = {"id": self.repo_id, "private": self.repository.private, "tags": [], "siblings": siblings}
        self.answer(about | {"sha": self.repository.oid(revision)})

    def branch(self, branch: str):
        if branch in self.repository.references:
            return self.refuse(409, "Reference already exists")
        start = json.loads(self.body or b"{}").get("startingPoint", "main")
        self.repository.references[branch] = self.repository.oid(start)
        self.answer({})

    def tree(self, path: str):
        inside = {name: content for name, content in self.files.items() if not path or name.startswith(f"{path}/")}
        if path and not inside:
            return self.refuse(404, f"{path} does not exist", "EntryNotFound")
        self.answer([self.entry(name, content) for name, content in inside.items()])

    def entry(self, path: str, content: bytes) -> dict:
        entry = {"type": "file", "path": path, "size": len(content), "oid": blob_id(path, content)}
        lfs = {"oid": blob_id(path, content), "size": len(content), "pointerSize": 128}
        return entry | ({"lfs": lfs} if path.endswith(LFS_SUFFIXES) else {})

    def validate_yaml(self):
        """What the Hub checks that is known to matter: a header that is a mapping, lists of names, one licence."""
        match = re.match(r"---\r?\n(.*?)\r?\n---", json.loads(self.body)["content"], re.DOTALL)
        header = yaml.safe_load(match.group(1)) if match else {}
        errors = [] if isinstance(header, dict) else ["the header is no mapping"]
        for name in ("language", "tags", "datasets", "metrics") if not errors else ():
            values = header.get(name) or []
            if not all(isinstance(value, str) for value in (values if isinstance(values, list) else [values])):
                errors.append(f'"{name}" must be strings')
        self.answer({"errors": [{"message": text} for text in errors], "warnings": []}, 400 if errors else 200)

    def preupload(self):
        files = []
        for file in json.loads(self.body)["files"]:
            there = self.files.get(file["path"])
            mode = "lfs" if file["path"].endswith(LFS_SUFFIXES) or file["size"] > 10_000_000 else "regular"
            about = {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}
            files.append(about | ({"oid": blob_id(file["path"], there)} if there is not None else {}))
        self.answer({"files": files})

    def lfs_batch(self):
        objects = []
        for wanted in json.loads(self.body)["objects"]:
            link = f"{self.server.endpoint}/lfs-objects/{wanted['oid']}"
            actions = {"upload": {"href": link}, "verify": {"href": f"{self.server.endpoint}/lfs-verify"}}
            objects.append(wanted | ({} if wanted["oid"] in self.server.objects else {"actions": actions}))
        self.answer({"transfer": "basic", "objects": objects})

    def lfs_upload(self, oid: str):
        if hashlib.sha256(self.body).hexdigest() != oid:
            return self.refuse(400, "content is not what its sha256 says")
        self.server.objects[oid] = self.body
        self.answer(b"")

    def lfs_verify(self):
        asked = json.loads(self.body)
        there = self.server.objects.get(asked["oid"])
        self.answer({}, 200 if there is not None and len(there) == asked["size"] else 404)

    def commit(self):
        reference = self.revision
        if "create_pr" in self.query:
            number = 1 + sum(name.startswith("refs/pr/") for name in self.repository.references)
            reference = f"refs/pr/{number}"
        files = dict(self.files)
        for line in self.body.splitlines():
            key, value = (item := json.loads(line))["key"], item["value"]
            if key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
            elif key == "deletedFile":
                del files[value["path"]]
        oid = self.repository.add_commit(reference, files)
        address = f"{self.server.endpoint}/{self.name}"
        answer = {"commitUrl": f"{address}/commit/{oid}", "commitOid": oid, "success": True}
        if "create_pr" in self.query:
            answer["pullRequestUrl"] = f"{address}/discussions/{reference.removeprefix('refs/pr/')}"
        self.answer(answer)

    def resolve(self, path: str):
        oid = self.repository.oid(self.revision)
        if path not in self.files:
            return self.refuse(404, "Entry not found", "EntryNotFound")
        content = self.files[path]
        headers = {"X-Repo-Commit": oid, "ETag": f'"{blob_id(path, content)}"'}
        if not path.endswith(LFS_SUFFIXES):
            return self.answer(content, 200, headers)
        headers |= {"X-Linked-Etag": headers["ETag"], "X-Linked-Size": str(len(content))}
        other_host = self.server.endpoint.replace("127.0.0.1", "localhost")  # redirects inside the Hub are followed
        location = f"{other_host}/lfs-objects/{blob_id(path, content)}"
        self.answer(b"", 302, headers | {"Location": location})

    def lfs_download(self, oid: str):
        self.answer(self.server.objects[oid])
