import { execFile } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PROJECT_ROOT } from '../../test/support/project.ts'

/** Where packages are put; git does not know it. */
export const OUTPUT = join(PROJECT_ROOT, 'dist-packages')

/** Runs a program to its end and gives what it printed. */
export async function run(program: string, words: readonly string[], folder = PROJECT_ROOT): Promise<string> {
  const options = { cwd: folder, maxBuffer: 1 << 28 }
  return (await promisify(execFile)(program, [...words], options)).stdout
}

export async function readVersion(): Promise<string> {
  const manifest = JSON.parse(await readFile(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string }
  return manifest.version
}

/** The npm tarball of this checkout, with the program built anew. */
export async function packTarball(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const printed = await run('npm', ['pack', '--silent', '--pack-destination', folder])
  return join(folder, printed.trim().split('\n').at(-1)!)
}
