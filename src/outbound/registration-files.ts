import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface RegistrationFile {
  readonly path: string
  readonly text: string
}

const IS_REGISTRATION = /\.(ya?ml|json)$/

/** The registration files of these paths. A directory stands for every `.yaml`, `.yml` and `.json` in it, in the order of their names. */
async function filesOf(paths: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const path of paths) {
    if (!(await stat(path)).isDirectory()) found.push(path)
    else for (const name of (await readdir(path)).sort()) if (IS_REGISTRATION.test(name)) found.push(join(path, name))
  }
  return [...new Set(found)]
}

/** Reads all registration files. @throws Error that names what cannot be read */
export async function readRegistrationFiles(paths: readonly string[]): Promise<RegistrationFile[]> {
  const files = await filesOf(paths)
  return Promise.all(files.map(async (path) => ({ path, text: await readFile(path, 'utf8') })))
}

/** A value that changes whenever a registration file changes, appears or disappears. */
export async function registrationsStamp(paths: readonly string[]): Promise<string> {
  const stamps = await filesOf(paths).then((files) =>
    Promise.all(
      files.map(async (path) => {
        const { mtimeMs, size, ino } = await stat(path)
        return `${path} ${mtimeMs} ${size} ${ino}`
      }),
    ),
  )
  return stamps.join('\n')
}
