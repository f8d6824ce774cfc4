import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { OUTPUT, readVersion, run } from './project.ts'

/** Writes what the program consists of at run time, by package-lock.json, in the format of CycloneDX. */
export async function writeSbom(): Promise<string> {
  const words = [
    'sbom',
    '--sbom-format',
    'cyclonedx',
    '--sbom-type',
    'application',
    '--package-lock-only',
    '--omit',
    'dev',
  ]
  const text = await run('npm', words)
  await mkdir(OUTPUT, { recursive: true })
  const file = join(OUTPUT, `hearth-${await readVersion()}.cdx.json`)
  await writeFile(file, text)
  return file
}
