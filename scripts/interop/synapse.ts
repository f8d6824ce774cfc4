import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { PeerKind, PeerPlace } from './peer.ts'

const FREELY = { per_second: 1e6, burst_count: 1e6 }

/** As an operator would set it, but for this: nobody is asked to slow down, and it forgets quickly that somebody did not answer. */
function configOf({ name, caFile, directory, port }: PeerPlace): object {
  return {
    server_name: name,
    pid_file: join(directory, 'pid'),
    listeners: [
      {
        ...{ port, type: 'http', tls: false, x_forwarded: true, bind_addresses: ['127.0.0.1'] },
        resources: [{ names: ['client', 'federation'], compress: false }],
      },
    ],
    database: { name: 'sqlite3', args: { database: join(directory, 'homeserver.db') } },
    log_config: join(directory, 'log.yaml'),
    media_store_path: join(directory, 'media'),
    signing_key_path: join(directory, 'signing.key'),
    macaroon_secret_key: 'of a server that lives for some minutes',
    form_secret: 'of a server that lives for some minutes',
    report_stats: false,
    trusted_key_servers: [],
    enable_registration: true,
    enable_registration_without_verification: true,
    bcrypt_rounds: 4,
    caches: { sync_response_cache_duration: '0s' },
    allow_public_rooms_over_federation: true,
    room_list_publication_rules: [{ action: 'allow' }],
    ip_range_blacklist: [],
    federation_verify_certificates: true,
    federation_custom_ca_list: [caFile],
    federation: {
      destination_min_retry_interval: '1s',
      destination_max_retry_interval: '5s',
      // Within one request, before it counts as failed.
      max_long_retry_delay: '5s',
    },
    ...Object.fromEntries(
      ['message', 'registration', 'joins_per_room', 'room_creation', 'admin_redaction', 'key_requests', 'profile'].map(
        (name) => [`rc_${name}`, FREELY],
      ),
    ),
    rc_login: { address: FREELY, account: FREELY, failed_attempts: FREELY },
    rc_joins: { local: FREELY, remote: FREELY },
    rc_invites: { per_room: FREELY, per_user: FREELY, per_issuer: FREELY },
    rc_federation: { sleep_limit: 1e6, reject_limit: 1e6, concurrent: 10 },
  }
}

const logConfig = (file: string) => ({
  version: 1,
  formatters: { line: { format: '%(asctime)s %(name)s %(levelname)s %(request)s %(message)s' } },
  filters: { context: { '()': 'synapse.logging.context.LoggingContextFilter', request: '' } },
  handlers: { file: { class: 'logging.FileHandler', formatter: 'line', filename: file, filters: ['context'] } },
  root: { level: 'INFO', handlers: ['file'] },
})

/** A Synapse of this Python. @throws Error when it has none */
export const synapse = (python: string): PeerKind => ({
  label: 'Synapse',
  version: synapseVersion(python),
  remark:
    'Synapse runs on SQLite, without rate limits and without its cache of first syncs, publishes rooms, and waits 1 to 5 s instead of 10 minutes and more before it tries a server again. After a restart each says one thing more, as Synapse takes up what it had acknowledged when the next transaction comes.',
  async prepare(place) {
    const { directory } = place
    const [configFile, logFile] = [join(directory, 'homeserver.yaml'), join(directory, 'homeserver.log')]
    const words = ['-m', 'synapse.app.homeserver', '-c', configFile]
    await writeFile(configFile, stringify(configOf(place)))
    await writeFile(join(directory, 'log.yaml'), stringify(logConfig(logFile)))
    execFileSync(python, [...words, '--generate-keys'], { cwd: directory, stdio: 'ignore' })
    return { command: python, words, healthPath: '/health', logFile }
  },
})

function synapseVersion(python: string): string {
  try {
    const words = ['-c', 'import synapse; print(synapse.__version__)']
    return execFileSync(python, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    throw new Error(
      `${python} has no Synapse: "python3 -m venv there && there/bin/pip install matrix-synapse" makes one`,
    )
  }
}
