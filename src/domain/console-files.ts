import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What `npm run build` makes of `src/console/`: the files of the console, each named by a hash of its content, plain and compressed. */
export interface ConsoleFiles {
  /** The list of files; undefined if the console has not been built. */
  list(): Promise<ConsoleList | undefined>
  /** A file of the list. Nothing is kept in memory: a browser asks for each once. @throws Error if it is not there */
  read(name: string, isCompressed: boolean): Promise<Buffer>
}

export interface ConsoleList {
  /** The script and the style sheet that the page names, and its icon. */
  readonly script: string
  readonly style: string
  readonly icon: string
  readonly files: readonly string[]
}

const OWN_CONSOLE = fileURLToPath(new URL('../../dist/console', import.meta.url))

export function openConsoleFiles(directory = OWN_CONSOLE): ConsoleFiles {
  let list: ConsoleList | undefined
  return {
    async list() {
      list ??= await readFile(join(directory, 'files.json'), 'utf8').then(
        (text) => JSON.parse(text) as ConsoleList,
        () => undefined,
      )
      return list
    },
    read: (name, isCompressed) => readFile(join(directory, isCompressed ? `${name}.gz` : name)),
  }
}
