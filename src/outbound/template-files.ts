import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TemplateError } from '../core/template.ts'

/** The templates that come with the program. */
export const OWN_TEMPLATES = fileURLToPath(new URL('../../templates', import.meta.url))

/** The brand whose templates stand in for those that another brand lacks. */
export const DEFAULT_BRAND = 'default'
/** The language of last resort. */
export const DEFAULT_LANGUAGE = 'en'

export type TemplateReaders = Readonly<Record<string, (source: string) => unknown>>

/** Templates of several names by brand and language, as files `<brand>/<language>/<name>`. */
export interface TemplateFiles<Readers extends TemplateReaders> {
  /**
   * The template that fits best: the brand's before the default brand's, and within a brand the first language of the list that it
   * has. Brand and language are compared with the directories that were there at the start and are never part of a path.
   */
  find<Name extends keyof Readers & string>(
    name: Name,
    brand: string | undefined,
    languages: readonly string[],
  ): ReturnType<Readers[Name]>
  /** `<brand>/<language>/<name>` of every template. */
  readonly names: readonly string[]
}

/**
 * Reads all templates at once, so that a mistake in one shows at the start and not when a mail is due.
 *
 * @param directories later ones win, file by file
 * @throws Error that names file and line
 */
export async function loadTemplates<Readers extends TemplateReaders>(
  readers: Readers,
  directories: readonly string[],
): Promise<TemplateFiles<Readers>> {
  const found = new Map<string, unknown>()
  for (const directory of directories) {
    for (const brand of await subdirectories(directory)) {
      for (const language of await subdirectories(join(directory, brand))) {
        await loadFolder(readers, join(directory, brand, language), `${brand}/${language}`.toLowerCase(), found)
      }
    }
  }
  for (const name of Object.keys(readers)) {
    if (!found.has(`${DEFAULT_BRAND}/${DEFAULT_LANGUAGE}/${name}`)) {
      throw new Error(
        `there is no template ${DEFAULT_BRAND}/${DEFAULT_LANGUAGE}/${name} in ${directories.join(' or ')}`,
      )
    }
  }
  return {
    names: [...found.keys()].sort(),
    find<Name extends keyof Readers & string>(name: Name, brand: string | undefined, languages: readonly string[]) {
      const wanted = [...languages.map((language) => language.toLowerCase()), DEFAULT_LANGUAGE]
      for (const owner of [brand?.toLowerCase() ?? DEFAULT_BRAND, DEFAULT_BRAND]) {
        for (const language of wanted) {
          const template = found.get(`${owner}/${language}/${name}`)
          if (template !== undefined) return template as ReturnType<Readers[Name]>
        }
      }
      throw new Error(`there is no template ${name}`)
    },
  }
}

async function loadFolder(
  readers: TemplateReaders,
  folder: string,
  key: string,
  found: Map<string, unknown>,
): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const read = Object.hasOwn(readers, entry.name) ? readers[entry.name] : undefined
    if (entry.isDirectory() || read === undefined) continue
    const path = join(folder, entry.name)
    try {
      found.set(`${key}/${entry.name}`, read(await readFile(path, 'utf8')))
    } catch (error) {
      if (error instanceof TemplateError) throw new Error(`${path}:${error.line}: ${error.message}`)
      throw error
    }
  }
}

/** None where the directory is not there: it need not be. */
async function subdirectories(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
