import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

// Files: the directory of the policies' texts

export function policyTextPath(directory: string, id: string, version: string, language: string): string {
  return join(directory, `${id}-${version}-${language}.txt`)
}

/** A policy's text; undefined when there is no such file. */
export async function readPolicyText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
