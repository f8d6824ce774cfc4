import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { PeerKind, PeerPlace } from './peer.ts'

const configOf = ({ name, directory }: PeerPlace): object => ({
  version: 2,
  global: {
    server_name: name,
    private_key: join(directory, 'signing.key'),
    presence: { enable_inbound: true, enable_outbound: true },
    jetstream: { storage_path: directory },
  },
  client_api: { registration_disabled: false, rate_limiting: { enabled: false }, ...database(directory, 'client') },
  federation_api: { send_max_retries: 16, key_perspectives: [], ...database(directory, 'federation') },
  room_server: database(directory, 'rooms'),
  sync_api: database(directory, 'sync'),
  user_api: {
    bcrypt_cost: 4,
    account_database: of(directory, 'accounts'),
    device_database: of(directory, 'devices'),
    ...database(directory, 'users'),
  },
  key_server: database(directory, 'keys'),
  media_api: { base_path: join(directory, 'media'), ...database(directory, 'media') },
  mscs: { mscs: [], ...database(directory, 'mscs') },
  relay_api: database(directory, 'relay'),
  logging: [{ type: 'std', level: 'info' }],
})

const of = (directory: string, name: string) => ({ connection_string: `file:${join(directory, `${name}.db`)}` })

const database = (directory: string, name: string) => ({ database: of(directory, name) })

/** A Dendrite from a folder with its programs. @throws Error when they are not there */
export const dendrite = (binaries: string): PeerKind => ({
  label: 'Dendrite',
  version: dendriteVersion(binaries),
  remark: 'Dendrite runs on SQLite and without rate limits.',
  async prepare(place) {
    const { directory, port, caFile } = place
    const configFile = join(directory, 'dendrite.yaml')
    await writeFile(configFile, stringify(configOf(place)))
    execFileSync(join(binaries, 'generate-keys'), ['--private-key', join(directory, 'signing.key')])
    return {
      command: join(binaries, 'dendrite'),
      words: [
        ...['--config', configFile, '--http-bind-address', `127.0.0.1:${port}`],
        '--really-enable-open-registration',
      ],
      env: { SSL_CERT_FILE: caFile },
      healthPath: '/_dendrite/monitor/health',
      logFile: join(directory, 'out'),
    }
  },
})

function dendriteVersion(binaries: string): string {
  try {
    const words = ['--version']
    return execFileSync(join(binaries, 'dendrite'), words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .trim()
      .split('+')[0]!
  } catch {
    throw new Error(`${binaries} has no program "dendrite": build it from its Go module, and "generate-keys" with it`)
  }
}
