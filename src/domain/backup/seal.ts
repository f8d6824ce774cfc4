import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { MAX_BACKUP_TEXT_BYTES } from '../limits/backups.ts'
import { type BackupStore, readWhole } from './backup-store.ts'
import { once } from './chunks.ts'
import { type Mac, macUnder } from './proof.ts'

/**
 * How the files of a backup are encrypted: in the age format (age-encryption.org/v1), for one or more recipients, or not at all.
 *
 * A passphrase protects a key that is kept with the backups, and that key the files: so a passphrase, which takes a second to try, is
 * tried once and not for each file.
 */
export interface Seal {
  readonly recipients: readonly string[]
  /** Names the readers: media of the same readers are kept once. */
  readonly set: string
  /** What the names of encrypted files end with. */
  readonly ending: string
  /** Where a passphrase is among the readers' means. */
  readonly mac?: Mac | undefined
  seal(source: AsyncIterable<Buffer>): AsyncIterable<Buffer>
}

/** Reads encrypted files. */
export interface Unseal {
  /** Where it is opened by the passphrase. */
  readonly mac?: Mac | undefined
  unseal(source: AsyncIterable<Buffer>): AsyncIterable<Buffer>
}

/** By what backups are protected, or opened. */
export interface Secrets {
  readonly passphrase?: string | undefined
  /** Of the readers: `age1...`. */
  readonly recipients?: readonly string[] | undefined
  /** A reader's secret key: `AGE-SECRET-KEY-1...`. */
  readonly identity?: string | undefined
}

/** The key that a passphrase protects, in the store of the backups. */
export const KEY_FILE = 'key.age'

export const PLAIN: Seal & Unseal = {
  recipients: [],
  set: 'plain',
  ending: '',
  seal: (source) => source,
  unseal: (source) => source,
}

/** @throws Error for a wrong passphrase and for a recipient that is none */
export async function openSeal(store: BackupStore, { passphrase, recipients = [] }: Secrets): Promise<Seal> {
  if (passphrase === undefined && recipients.length === 0) return PLAIN
  const all = [...recipients]
  const secret = passphrase === undefined ? undefined : await keyOf(store, passphrase)
  if (secret !== undefined) all.push(await recipientOf(secret))
  const { Encrypter } = await import('age-encryption')
  const encrypter = new Encrypter()
  for (const recipient of all) {
    try {
      encrypter.addRecipient(recipient)
    } catch {
      throw new Error(`"${recipient}" is no public key of age: it looks like age1 and 58 letters and digits`)
    }
  }
  const set = createHash('sha256').update(all.sort().join('\n')).digest('hex').slice(0, 16)
  return {
    recipients: all,
    set,
    ending: '.age',
    mac: secret === undefined ? undefined : macUnder(secret),
    async *seal(source) {
      yield* chunksOf(await encrypter.encrypt(toWeb(source)))
    },
  }
}

/** @throws Error for a wrong passphrase, and where what is needed was not given */
export async function openUnseal(
  store: BackupStore,
  recipients: readonly string[],
  { passphrase, identity }: Secrets,
): Promise<Unseal> {
  if (recipients.length === 0) return PLAIN
  const { Decrypter } = await import('age-encryption')
  const decrypter = new Decrypter()
  const secret = passphrase === undefined ? undefined : await keyOf(store, passphrase, true)
  if (secret !== undefined) decrypter.addIdentity(secret)
  if (identity !== undefined) decrypter.addIdentity(identity)
  if (passphrase === undefined && identity === undefined) {
    const hasKey = (await readWhole(store, KEY_FILE, MAX_BACKUP_TEXT_BYTES)) !== undefined
    const means = hasKey ? 'give its passphrase: --passphrase, or --passphrase-file FILE' : 'give --identity-file FILE'
    throw new Error(`the backup is encrypted: ${means}`)
  }
  return {
    mac: secret === undefined ? undefined : macUnder(secret),
    async *unseal(source) {
      try {
        yield* chunksOf(await decrypter.decrypt(toWeb(source)))
      } catch (error) {
        if (!/no identity matched/.test((error as Error).message)) throw error
        throw new Error('the backup is encrypted for somebody else: give the key or passphrase that it was made for')
      }
    },
  }
}

async function recipientOf(identity: string): Promise<string> {
  const { identityToRecipient } = await import('age-encryption')
  return identityToRecipient(identity)
}

/** The key that the passphrase protects, made when there is none yet. */
async function keyOf(store: BackupStore, passphrase: string, mustExist = false): Promise<string> {
  const { Decrypter, Encrypter, generateX25519Identity } = await import('age-encryption')
  const stored = await readWhole(store, KEY_FILE, MAX_BACKUP_TEXT_BYTES)
  if (stored === undefined) {
    if (mustExist) throw new Error(`${store.place} has no ${KEY_FILE}: its backups were not made with a passphrase`)
    const identity = await generateX25519Identity()
    const encrypter = new Encrypter()
    encrypter.setPassphrase(passphrase)
    await store.write(KEY_FILE, once(Buffer.from(await encrypter.encrypt(identity))))
    return identity
  }
  const decrypter = new Decrypter()
  decrypter.addPassphrase(passphrase)
  return decrypter.decrypt(stored, 'text').catch(() => {
    throw new Error(`the passphrase is not that of the backups in ${store.place}`)
  })
}

const toWeb = (source: AsyncIterable<Buffer>): globalThis.ReadableStream<Uint8Array> =>
  Readable.toWeb(Readable.from(source, { objectMode: false })) as unknown as globalThis.ReadableStream<Uint8Array>

async function* chunksOf(stream: globalThis.ReadableStream<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const chunk of stream as unknown as ReadableStream<Uint8Array>) {
    yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  }
}
