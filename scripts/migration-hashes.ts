import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readMigrations } from '../src/store/db/migrate.ts'

/** Beside the migrations: the hash of each that was ever committed. */
export const HASHES_FILE = 'hashes.json'

/**
 * The list of hashes as it should be: a new migration adds its line.
 * @throws Error when one that is listed was changed or is gone: databases have it already
 */
export async function hashesOf(directory: string): Promise<string> {
  const listed = JSON.parse(await readFile(join(directory, HASHES_FILE), 'utf8')) as Record<string, string>
  const found = new Map((await readMigrations(directory)).map(({ name, checksum }) => [name, checksum]))
  for (const [name, hash] of Object.entries(listed)) {
    if (found.get(name) === hash) continue
    const what = found.has(name) ? 'was changed' : 'is gone'
    throw new Error(`${name} ${what} although databases have it. Restore it, and write what is new as a new migration.`)
  }
  return `${JSON.stringify(Object.fromEntries([...found].sort()), null, 2)}\n`
}
