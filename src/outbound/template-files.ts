import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { extname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isLanguageTag } from '../core/languages.ts'
import { TemplateError } from '../core/template.ts'

/** The templates that come with the program. */
export const OWN_TEMPLATES = fileURLToPath(new URL('../../templates', import.meta.url))

/** The brand whose templates are used if another brand lacks them. */
export const DEFAULT_BRAND = 'default'
/** The language of last resort. */
export const DEFAULT_LANGUAGE = 'en'

/** Far more than any page needs. */
export const MAX_TEMPLATE_BYTES = 256 * 1024
/** An unknown file name with one of these endings is a mistake. */
const OUR_ENDINGS = new Set(['.mail', '.page'])

/** Functions that parse a file's text to a template; `language` is that of the folder. */
export type TemplateReaders = Readonly<Record<string, (source: string, language: string) => unknown>>

/** Templates of several names by brand and language, as files `<brand>/<language>/<name>`. */
export interface TemplateFiles<Readers extends TemplateReaders> {
  /**
   * The best template: the brand's before the default brand's, and within a brand the first language of the list that it has. Brand and
   * language are compared with the names of the directories at the start and never become part of a path.
   */
  find<Name extends keyof Readers & string>(
    name: Name,
    brand: string | undefined,
    languages: readonly string[],
  ): ReturnType<Readers[Name]>
  /** `<brand>/<language>/<name>` of every template. */
  readonly names: readonly string[]
  /** The languages of all templates. */
  readonly languages: readonly string[]
}

/** A template of our own. It is read when it is first wanted: most never are, and a test has read them all. */
class OwnTemplate {
  readonly parsed: () => unknown

  constructor(path: string, parse: (source: string) => unknown) {
    this.parsed = () => parse(readFileSync(path, 'utf8'))
  }
}

interface OwnFile {
  readonly brand: string
  readonly language: string
  readonly name: string
}

let ownFiles: readonly OwnFile[] | undefined

/** Which templates we have. They stay the same for as long as a process runs. */
function listOwn(): readonly OwnFile[] {
  ownFiles ??= readdirSync(OWN_TEMPLATES, { recursive: true, encoding: 'utf8' }).flatMap((path) => {
    const [brand, language, name] = path.split(sep)
    return brand === undefined || language === undefined || name === undefined ? [] : [{ brand, language, name }]
  })
  return ownFiles
}

function addOwn(found: Map<string, unknown>, readers: TemplateReaders): void {
  for (const { brand, language, name } of listOwn()) {
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined
    if (read === undefined) continue
    const path = join(OWN_TEMPLATES, brand, language, name)
    found.set(keyOf(brand, language, name), new OwnTemplate(path, (source) => read(source, language)))
  }
}

/**
 * Reads all templates of operators at once, so that a mistake in one shows at the start and not when a mail is due.
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
    if (directory === OWN_TEMPLATES) {
      addOwn(found, readers)
      continue
    }
    for (const brand of await subdirectories(readers, directory)) {
      for (const language of await subdirectories(readers, join(directory, brand))) {
        const folder = join(directory, brand, language)
        for (const [name, template] of await loadFolder(readers, folder, language)) {
          found.set(keyOf(brand, language, name), template)
        }
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

  function templateOf(key: string): unknown {
    const template = found.get(key)
    if (!(template instanceof OwnTemplate)) return template
    const parsed = template.parsed()
    found.set(key, parsed)
    return parsed
  }

  return {
    names: [...found.keys()].sort(),
    languages: [...new Set([...found.keys()].map((key) => key.split('/')[1] ?? ''))].sort(),
    find<Name extends keyof Readers & string>(name: Name, brand: string | undefined, languages: readonly string[]) {
      const wanted = [...languages.map((language) => language.toLowerCase()), DEFAULT_LANGUAGE]
      for (const owner of [brand?.toLowerCase() ?? DEFAULT_BRAND, DEFAULT_BRAND]) {
        for (const language of wanted) {
          const template = templateOf(keyOf(owner, language, name))
          if (template !== undefined) return template as ReturnType<Readers[Name]>
        }
      }
      throw new Error(`there is no template ${name}`)
    },
  }
}

/** However the folders are written. */
const keyOf = (brand: string, language: string, name: string): string =>
  `${brand.toLowerCase()}/${language.toLowerCase()}/${name}`

async function loadFolder(
  readers: TemplateReaders,
  folder: string,
  language: string,
): Promise<(readonly [name: string, template: unknown])[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  const names = entries.filter((entry) => isOurs(readers, entry, folder)).map(({ name }) => name)
  if (names.length > 0 && !isLanguageTag(language)) {
    throw new Error(`${folder} is named after no language that can be asked for, as de or pt-BR are`)
  }
  return names.map((name) => {
    const path = join(folder, name)
    const text = readText(path)
    try {
      return [name, readers[name]?.(text, language)] as const
    } catch (error) {
      if (error instanceof TemplateError) throw new Error(`${path}:${error.line}: ${error.message}`)
      throw error
    }
  })
}

/** @throws Error for one that only looks like a template */
function isOurs(readers: TemplateReaders, entry: Dirent, folder: string): boolean {
  if (entry.isDirectory()) return false
  if (Object.hasOwn(readers, entry.name)) return true
  const ending = extname(entry.name)
  const known = Object.keys(readers).filter((name) => name.endsWith(ending))
  if (!OUR_ENDINGS.has(ending) || known.length === 0) return false
  throw new Error(`${join(folder, entry.name)}: there is no such template; known are ${known.join(', ')}`)
}

/** Many small files: to wait for each takes several times the processor time of reading it. */
function readText(path: string): string {
  const { size } = statSync(path)
  if (size > MAX_TEMPLATE_BYTES) {
    throw new Error(`${path}: it has ${size} bytes, and a template may have ${MAX_TEMPLATE_BYTES}`)
  }
  const bytes = readFileSync(path)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Error(`${path}: its text is not UTF-8`)
  }
}

/** Empty if the directory does not exist, which is allowed. */
async function subdirectories(readers: TemplateReaders, path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true })
    const astray = entries.find((entry) => !entry.isDirectory() && Object.hasOwn(readers, entry.name))
    if (astray !== undefined) {
      throw new Error(`${join(path, astray.name)}: a template lies in a folder <brand>/<language>, as default/en`)
    }
    return entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
