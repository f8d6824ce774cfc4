import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { type Journal, type JournalHeader, readJournal, writeJournal } from '../../core/backup/journal.ts'
import { type Manifest, timeOfBackup } from '../../core/backup/manifest.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import { getEpochs } from '../../store/backup/restore-epochs.ts'
import { oldestUndone, type Undone, undoneSince } from '../../store/backup/undone.ts'
import type { Reader } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import { JOURNAL_MARGIN_MS, MAX_JOURNAL_BYTES, MAX_JOURNAL_ENTRIES } from '../limits/backups.ts'
import { listBackups, sha256Of } from './backup-files.ts'
import { type BackupStore, readWhole } from './backup-store.ts'
import { joined, once } from './chunks.ts'
import { prove, type Trust, whyUnproved } from './proof.ts'
import { PLAIN, type Seal, type Unseal } from './seal.ts'

const FOLDER = 'journal/'
const ENDING = '.jsonl.gz'
/** More than the first line of a journal takes. */
const HEADER_BYTES = 64 * 1024
const compress = promisify(gzip)
const expand = promisify(gunzip)

export interface JournalParts {
  readonly store: BackupStore
  readonly seal: Seal
  readonly signingKey: SigningKey
  readonly serverName: string
  readonly release: string
  readonly clock: Clock
  readonly db: Reader
}

/**
 * Writes what ended since the newest backup beside it, in place of what was written before. A journal and those of later backups together
 * hold what ended since a backup. After a restore it is another journal: what ended in the time that was lost by the restore still stands in
 * the one of before, and whoever restores the newer backup after all needs both.
 *
 * @returns the backup and how many things ended; undefined if there is no backup yet
 */
export async function writeNewestJournal(
  parts: JournalParts,
  maxBytes = MAX_JOURNAL_BYTES - HEADER_BYTES,
): Promise<{ readonly backupId: string; readonly entries: number } | undefined> {
  const { store, seal, clock, db, serverName, release, signingKey } = parts
  const backupId = (await listBackups(store)).at(-1)
  if (backupId === undefined) return undefined
  const to = clock.now()
  // A transaction that began before the backup may have ended after it.
  const wanted = (timeOfBackup(backupId) ?? 0) - JOURNAL_MARGIN_MS
  const oldest = await oldestUndone(db)
  const found = await undoneSince(db, wanted, MAX_JOURNAL_ENTRIES + 1)
  const entries = newestWithin(found.slice(0, MAX_JOURNAL_ENTRIES), maxBytes)
  const is_cut = entries.length < found.length || (await isForgotten(db, wanted, oldest))
  const epoch = (await getEpochs(db)).at(-1)?.epoch
  const header = { server_name: serverName, backup_id: backupId, epoch, release, from: wanted, to, is_cut }
  const by = { mac: seal.mac, key: signingKey }
  const text = writeJournal(header, entries, sha256Of, (proved) => prove('journal', proved, by))
  const small = await compress(Buffer.from(text))
  const name = nameOf(header) + seal.ending
  await store.write(name, seal.seal(once(small)))
  // Of a backup whose readers were others before.
  for (const other of await journalsIn(store))
    if (other !== name && other.startsWith(nameOf(header))) await store.remove(other)
  return { backupId, entries: entries.length }
}

/** As many of the first as a reader takes: longer journals could not be read at a restore. */
function newestWithin(entries: readonly Undone[], maxBytes: number): readonly Undone[] {
  let bytes = 0
  const end = entries.findIndex((entry) => {
    bytes += Buffer.byteLength(JSON.stringify(entry)) + 1
    return bytes > maxBytes
  })
  return end === -1 ? entries : entries.slice(0, end)
}

/** Rows go after some weeks: where the oldest is newer than what is wanted, and not the first of all, some may be missing. */
async function isForgotten(db: Reader, wanted: number, oldest: number | undefined): Promise<boolean> {
  if (oldest === undefined || oldest <= wanted) return false
  const rows = await db.query('SELECT 1 AS one FROM undone WHERE undone_nid = 1')
  return rows.length === 0
}

/** Without what encryption adds. */
const nameOf = ({ backup_id, epoch }: Pick<JournalHeader, 'backup_id' | 'epoch'>): string =>
  `${FOLDER}${backup_id}${epoch === undefined ? '' : `.${epoch}`}${ENDING}`

const idOf = (name: string): string => name.slice(FOLDER.length).split('.')[0] ?? ''

async function journalsIn(store: BackupStore): Promise<string[]> {
  const names: string[] = []
  for await (const name of store.list(FOLDER)) if (timeOfBackup(idOf(name)) !== undefined) names.push(name)
  return names.sort()
}

/** Removes the journals that no backup needs: those from before the oldest one. */
export async function removeOldJournals(store: BackupStore, oldestBackup: string): Promise<void> {
  for (const name of await journalsIn(store)) if (idOf(name) < oldestBackup) await store.remove(name)
}

/**
 * What ended since a backup was made, oldest journal first.
 *
 * @param opened how a journal is read that is encrypted although the backup is not
 * @param trust undefined where the operator wants no proof
 * @throws Error for a journal that cannot be read, or was altered
 */
export async function readJournalsSince(
  store: BackupStore,
  { id, server_name, recipients, proof }: Pick<Manifest, 'id' | 'server_name' | 'recipients' | 'proof'>,
  unseal: Unseal,
  opened: () => Promise<Unseal>,
  trust: Trust | undefined,
): Promise<Journal<Undone>[]> {
  const journals: Journal<Undone>[] = []
  for (const name of await journalsIn(store)) {
    if (idOf(name) < id) continue
    try {
      const isEncrypted = !name.endsWith(ENDING)
      const by = !isEncrypted ? PLAIN : recipients.length > 0 ? unseal : await opened()
      const journal = readJournal<Undone>(await textOf(store, by, name), sha256Of)
      const { header } = journal
      if (!name.startsWith(nameOf(header)) || header.server_name !== server_name)
        throw new Error('it is of another backup')
      if (trust !== undefined) {
        // Without anything better, who made the backup is whom to believe.
        const known = trust.publicKeys.length > 0 || !proof ? trust.publicKeys : [proof.signature.public_key]
        const believed = { ...trust, publicKeys: known }
        const why = whyUnproved('journal', JSON.stringify(header), journal.proof, believed, recipients.length > 0)
        if (why !== undefined) throw new Error(why)
      }
      journals.push(journal)
    } catch (error) {
      throw new Error(
        `the journal ${name} in ${store.place} cannot be used: ${(error as Error).message}. With --without-journal the backup comes back without what ended since: logouts, changed passwords, erased users, removed messages and media`,
      )
    }
  }
  // Two of one backup are of different times: the state of an account is that of the later.
  return journals.sort((a, b) => a.header.to - b.header.to)
}

async function textOf(store: BackupStore, unseal: Unseal, name: string): Promise<string> {
  const stored = await readWhole(store, name, MAX_JOURNAL_BYTES)
  if (stored === undefined) throw new Error('it is missing')
  const small = await joined(unseal.unseal(once(stored)))
  return (await expand(small, { maxOutputLength: MAX_JOURNAL_BYTES })).toString('utf8')
}
