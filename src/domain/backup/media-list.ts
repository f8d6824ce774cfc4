import type { BackupStore } from './backup-store.ts'

/** The lines of a list of media. */
export function* mediaIn(list: string): Generator<{ digest: string; bytes: number }> {
  for (let at = 0, end = list.indexOf('\n'); end !== -1; at = end + 1, end = list.indexOf('\n', at)) {
    const [digest = '', bytes] = list.slice(at, end).split(' ')
    yield { digest, bytes: Number(bytes) }
  }
}

/** The names of the media in a set, without their folder. */
export async function mediaOfSet(store: BackupStore, set: string): Promise<Set<string>> {
  const found = new Set<string>()
  for await (const name of store.list(`media/${set}/`)) found.add(name.slice(name.lastIndexOf('/') + 1))
  return found
}
