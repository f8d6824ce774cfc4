import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { operationOf, PUBLISHED, WITHOUT_FEATURE } from './published.ts'

/** `PROOFS=write npm run test:unit` chooses a test file for each published operation anew, and writes this file. */
const FILE = new URL('./proofs.json', import.meta.url)

/** By operation, the test file in which it is answered with success. */
export type Proofs = Readonly<Record<string, string>>

export async function readProofs(): Promise<Proofs> {
  return JSON.parse(await readFile(FILE, 'utf8'))
}

/** The published operations that each test file got an answer of success for. @param folder see `test/support/answered.ts` */
async function answeredIn(folder: string): Promise<Map<string, ReadonlySet<string>>> {
  const answered = new Map<string, ReadonlySet<string>>()
  for (const name of await readdir(folder).catch(() => [])) {
    const lines = (await readFile(join(folder, name), 'utf8')).split('\n')
    const operations = lines.flatMap((line) => {
      const [method = '', path = ''] = line.split(' ')
      return operationOf(method, path) ?? []
    })
    answered.set(decodeURIComponent(name), new Set(operations))
  }
  return answered
}

/** What is wrong with the proofs, judged by the test files that ran. */
export async function findBrokenProofs(folder: string): Promise<string[]> {
  const answered = await answeredIn(folder)
  return Object.entries(await readProofs()).flatMap(([operation, file]) =>
    answered.get(file)?.has(operation) === false ? [`${operation} is not answered with success in ${file}`] : [],
  )
}

/** Names for each operation the test file that does the least besides. The proof of one that did not run stands. */
export async function chooseProofs(folder: string): Promise<void> {
  const answered = await answeredIn(folder)
  const files = [...answered].sort((a, b) => a[1].size - b[1].size || (a[0] < b[0] ? -1 : 1))
  const before = await readProofs()
  const proofs = PUBLISHED.filter((operation) => WITHOUT_FEATURE[operation] === undefined).flatMap((operation) => {
    const able = files.filter(([, operations]) => operations.has(operation)).map(([file]) => file)
    const known = before[operation]
    const stands = known !== undefined && (!answered.has(known) || able.includes(known))
    const file = stands ? known : able[0]
    return file === undefined ? [] : [[operation, file]]
  })
  await writeFile(FILE, `${JSON.stringify(Object.fromEntries(proofs), null, 2)}\n`)
}
