"""Makes of a tree of scripts/portable a Python wheel, whose only code is the programs' entry points, and the list of what is
in it (SPDX 2.3, JSON). Usage: portable.py TREE LIST FOLDER. LIST has a library and the file it was copied from on each line."""

import base64
import datetime
import hashlib
import json
import os
import subprocess
import sys
import zipfile

tree, listed, folder = sys.argv[1:4]
_, version, _, machine = os.path.basename(tree).split("-")
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
moment = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)


def glibc():
    """The newest version of glibc's functions that a file of the tree needs."""
    newest = (2, 0)
    for place, _, names in os.walk(tree):
        for name in names:
            path = os.path.join(place, name)
            if os.path.islink(path) or open(path, "rb").read(4) != b"\x7fELF":
                continue
            text = subprocess.run(["readelf", "-V", path], capture_output=True, text=True, check=True).stdout
            for word in text.split():
                if word.startswith("GLIBC_2."):
                    newest = max(newest, tuple(int(n) for n in word[6:].split(".")[:2]))
    return newest


def package_of(path):
    """Name and version of the Debian package of a file."""
    for candidate in (path, path.removeprefix("/usr")):
        owner = subprocess.run(["dpkg", "-S", candidate], capture_output=True, text=True)
        if owner.returncode == 0:
            name = owner.stdout.split(": ")[0].split(",")[0]
            shown = subprocess.run(["dpkg-query", "-W", "-f=${binary:Package} ${Version}", name],
                                   capture_output=True, text=True, check=True).stdout.split()
            return shown[0].split(":")[0], shown[1]
    return None, None


def add_licenses_and_list():
    libraries = [line.split() for line in open(listed)]
    entries = [{"SPDXID": "SPDXRef-tandem", "name": "tandem", "versionInfo": version, "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
                "copyrightText": "NOASSERTION"}]
    seen = {}
    for library, path in libraries:
        name, of = package_of(path)
        if name is None:
            sys.exit(f"error: {path} belongs to no Debian package")
        seen.setdefault(name, (of, []))[1].append(library)
        copyright_file = f"/usr/share/doc/{name}/copyright"
        target = os.path.join(tree, "share/doc/tandem/licenses", name)
        if os.path.exists(copyright_file) and not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            open(target, "wb").write(open(copyright_file, "rb").read())
    for name in sorted(seen):
        of, names = seen[name]
        entries.append({"SPDXID": f"SPDXRef-{name.replace('+', '-')}", "name": name, "versionInfo": of,
                        "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                        "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
                        "copyrightText": "NOASSERTION", "comment": "library: " + ", ".join(sorted(names)),
                        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                          "referenceLocator": f"pkg:deb/debian/{name}@{of}"}]})
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                  "relatedSpdxElement": "SPDXRef-tandem"}]
    relations += [{"spdxElementId": "SPDXRef-tandem", "relationshipType": "DEPENDS_ON",
                   "relatedSpdxElement": entry["SPDXID"]} for entry in entries[1:]]
    name = os.path.basename(tree)
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
                "documentNamespace": f"https://tandem.invalid/spdx/{name}-{epoch}",
                "creationInfo": {"created": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                                 "creators": ["Tool: scripts/portable"]},
                "packages": entries, "relationships": relations}
    with open(os.path.join(folder, name + ".spdx.json"), "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, moment.timetuple()[:6])
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")


def make_wheel():
    programs = sorted(os.listdir(os.path.join(tree, "bin")))
    major, minor = glibc()
    tag = f"py3-none-manylinux_{major}_{minor}_{machine}"
    path = os.path.join(folder, f"tandem_trainer-{version}-{tag}.whl")
    wheel = Wheel(path)
    functions = "".join(f"\n\ndef {program.replace('-', '_')}():\n    run({program!r})\n" for program in programs)
    wheel.add("tandem_trainer/__init__.py", (
        '"""The programs of Tandem, a trainer for convolutional networks. `folder` has its headers and CMake files."""\n\n'
        "import os\nimport sys\n\n"
        'folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree")\n\n\n'
        "def run(program):\n"
        '    path = os.path.join(folder, "bin", program)\n'
        "    os.execv(path, [path] + sys.argv[1:])\n" + functions).encode())
    for place, folders, names in os.walk(tree):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(place, name)
            mode = 0o755 if os.access(os.path.realpath(file), os.X_OK) else 0o644
            # A wheel has no links: what they name is copied.
            wheel.add("tandem_trainer/tree/" + os.path.relpath(file, tree), open(file, "rb").read(), mode)
    info = f"tandem_trainer-{version}.dist-info/"
    wheel.add(info + "METADATA", (
        f"Metadata-Version: 2.1\nName: tandem-trainer\nVersion: {version}\nSummary: Trainer for convolutional networks\n"
        "License: Apache-2.0\nRequires-Python: >=3.7\n").encode())
    wheel.add(info + "WHEEL", (
        f"Wheel-Version: 1.0\nGenerator: scripts/portable\nRoot-Is-Purelib: false\nTag: {tag}\n").encode())
    points = "".join(f"{program} = tandem_trainer:{program.replace('-', '_')}\n" for program in programs)
    wheel.add(info + "entry_points.txt", ("[console_scripts]\n" + points).encode())
    wheel.record.append(info + "RECORD,,")
    text = "\n".join(wheel.record) + "\n"
    wheel.add(info + "RECORD", text.encode())
    wheel.zip.close()


add_licenses_and_list()
make_wheel()
