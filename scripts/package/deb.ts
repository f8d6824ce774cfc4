import { chmod, copyFile, mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import { OUTPUT, packTarball, readVersion, run } from './project.ts'

const LIBRARY = 'usr/lib/hearth'

/** Files of contrib/ and of the project, and where the package has them. */
export const FILES: readonly (readonly [from: string, to: string, mode: number])[] = [
  ['contrib/debian/hearth', 'usr/bin/hearth', 0o755],
  ['contrib/systemd/hearth.service', 'usr/lib/systemd/system/hearth.service', 0o644],
  ['config/example.yaml', 'usr/share/doc/hearth/example.yaml', 0o644],
  ['CHANGELOG.md', 'usr/share/doc/hearth/NEWS', 0o644],
  ['contrib/debian/postinst', 'DEBIAN/postinst', 0o755],
  ['contrib/debian/prerm', 'DEBIAN/prerm', 0o755],
  ['contrib/debian/postrm', 'DEBIAN/postrm', 0o755],
  ['contrib/debian/templates', 'DEBIAN/templates', 0o644],
]

/** Builds the package for the architecture of this machine. It has its libraries with it, as package-lock.json names them, and needs dpkg-deb. */
export async function buildDeb(): Promise<string> {
  const [version, architecture] = [await readVersion(), (await run('dpkg', ['--print-architecture'])).trim()]
  const work = await mkdtemp(join(tmpdir(), 'hearth-deb-'))
  try {
    const root = join(work, 'root')
    await unpackProgram(work, join(root, LIBRARY))
    for (const [from, to, mode] of FILES) await place(join(PROJECT_ROOT, from), join(root, to), mode)
    await writeFile(join(root, 'usr/share/doc/hearth/copyright'), COPYRIGHT)
    await run('chmod', ['-R', 'u=rwX,go=rX', join(root, 'usr')])
    const kilobytes = (await run('du', ['-sk', join(root, 'usr')])).split('\t')[0]!
    await writeFile(join(root, 'DEBIAN/control'), control({ version, architecture, kilobytes }))
    await mkdir(OUTPUT, { recursive: true })
    const file = join(OUTPUT, `hearth_${version}_${architecture}.deb`)
    await run('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', root, file])
    return file
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function unpackProgram(work: string, library: string): Promise<void> {
  await run('tar', ['-xf', await packTarball(work), '-C', work])
  await mkdir(dirname(library), { recursive: true })
  await rename(join(work, 'package'), library)
  for (const name of ['package-lock.json', '.npmrc']) await copyFile(join(PROJECT_ROOT, name), join(library, name))
  await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline'], library)
  for (const name of ['package-lock.json', '.npmrc']) await rm(join(library, name))
  // By this name the program calls itself in its advice.
  await mkdir(join(library, 'bin'))
  await symlink('../dist/main.js', join(library, 'bin/hearth'))
}

async function place(from: string, to: string, mode: number): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await copyFile(from, to)
  await chmod(to, mode)
}

function control(facts: { version: string; architecture: string; kilobytes: string }): string {
  return `Package: hearth
Version: ${facts.version}
Architecture: ${facts.architecture}
Maintainer: The Hearth maintainers <hearth@localhost>
Installed-Size: ${facts.kilobytes}
Depends: nodejs (>= 20), adduser, debconf (>= 0.5) | debconf-2.0, libc6
Recommends: ca-certificates
Suggests: postgresql
Section: net
Priority: optional
Description: Matrix homeserver and identity service
 Hearth is a homeserver, an identity service and a host of application services
 in one process over one Postgres. Without a database of yours it runs a
 Postgres of its own, whose programs are in this package.
`
}

const COPYRIGHT = `Copyright: the authors of Hearth
License: Apache-2.0, in full in /usr/share/common-licenses/Apache-2.0

The libraries in /${LIBRARY}/node_modules have copyrights and licences of their own, each in its folder.
`
