import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Encrypter, generateX25519Identity } from 'age-encryption'
import { loadSigningKey } from '../../src/cli/serve/signing-key-file.ts'
import { KEY_FILE } from '../../src/domain/backup/seal.ts'
import { type Account, type Api, createRoom, openApi, register, sendText } from '../support/api.ts'
import { uploadFile } from '../support/media.ts'
import { type Outcome, runProgramHere } from '../support/run-hearth.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** A running server with some content, and a place for its backups. */
export interface KeptServer {
  readonly server: TestServer
  readonly api: Api
  readonly alice: Account
  readonly roomId: string
  /** Of a file that she uploaded. */
  readonly mediaId: string
  /** What its key file says, in base64. */
  readonly publicKey: string
  /** An empty directory that does not exist yet. */
  readonly place: string
  /** Runs a command with the configuration of the server. */
  run(words: readonly string[], env?: Readonly<Record<string, string>>, input?: string): Promise<Outcome>
  close(): Promise<void>
}

export const FILE = Buffer.from('a file that is to be kept')

export async function startKeptServer(serverName = 'kept.test'): Promise<KeptServer> {
  const server = await startServer({ server_name: serverName as never })
  const api = openApi(server.baseUrl)
  const directory = mkdtempSync(join(tmpdir(), 'hearth-kept-'))
  const alice = await register(api, 'alice')
  const roomId = await createRoom(api, alice.token, { preset: 'public_chat' })
  for (let count = 0; count < 20; count++)
    await sendText(api, alice.token, roomId, `t${count}`, `text ${count}\n\\ "é" ${'x'.repeat(count)}`)
  const mediaId = await uploadFile(server.baseUrl, alice.token, FILE, { type: 'text/plain' })
  const { current } = await loadSigningKey(server.config.data_dir)
  const env = {
    HEARTH__SERVER_NAME: serverName,
    HEARTH__DATABASE__URL: server.database.url,
    HEARTH__DATA_DIR: server.config.data_dir,
    HEARTH__LISTEN__PORT: new URL(server.baseUrl).port,
    HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8',
  }
  return {
    server,
    api,
    alice,
    roomId,
    mediaId,
    publicKey: current.publicKey,
    place: join(directory, 'backups'),
    run: (words, more = {}, input = '') => runProgramHere(words, { directory, env: { ...env, ...more }, input }),
    async close() {
      await api.close()
      await server.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The key of the passphrase, so that trying one takes no time. Where there is none, the first backup makes it, and each try takes a second. */
export async function placeKey(place: string, passphrase: string): Promise<void> {
  const encrypter = new Encrypter()
  encrypter.setScryptWorkFactor(4)
  encrypter.setPassphrase(passphrase)
  mkdirSync(place)
  writeFileSync(join(place, KEY_FILE), await encrypter.encrypt(await generateX25519Identity()))
}
