import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Manifest } from '../../src/core/backup/manifest.ts'

export const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** Of the newest backup of a place. */
export function manifestIn(place: string): { path: string; manifest: Manifest } {
  const path = filesIn(place)
    .filter((name) => name.endsWith('manifest.json'))
    .sort()
    .at(-1)!
  return { path, manifest: JSON.parse(readFileSync(path, 'utf8')) as Manifest }
}
