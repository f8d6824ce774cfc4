import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of package.json. This file runs as it is in tests, and a folder deeper when compiled for tools. */
export const PROJECT_ROOT = findRoot(dirname(fileURLToPath(import.meta.url)))

function findRoot(directory: string): string {
  if (existsSync(join(directory, 'package.json'))) return directory
  if (directory === dirname(directory)) throw new Error('package.json not found')
  return findRoot(dirname(directory))
}
