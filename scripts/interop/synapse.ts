import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { freePort } from '../../test/support/child-server.ts'
import { waitUntil } from '../../test/support/wait.ts'

/** A Synapse in a process of its own, with SQLite in a temporary folder. */
export interface Synapse {
  readonly baseUrl: string
  readonly version: string
  /** Where it writes what it does. */
  readonly logFile: string
  start(): Promise<void>
  kill(signal: NodeJS.Signals): Promise<void>
  /** Stops it and removes the folder, unless that is to be kept. */
  dispose(keep: boolean): Promise<void>
}

const READY_TIMEOUT_MS = 90_000
const FREELY = { per_second: 1e6, burst_count: 1e6 }

/** As an operator would set it, but for this: nobody is asked to slow down, and it forgets quickly that somebody did not answer. */
function configOf(options: SynapseOptions, directory: string, port: number): object {
  return {
    server_name: options.name,
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
    federation_custom_ca_list: [options.caFile],
    federation: { destination_min_retry_interval: '1s', destination_max_retry_interval: '5s' },
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

export interface SynapseOptions {
  readonly python: string
  readonly name: string
  readonly caFile: string
}

/** @throws Error when this Python has no Synapse */
export function synapseVersion(python: string): string {
  try {
    const words = ['-c', 'import synapse; print(synapse.__version__)']
    return execFileSync(python, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    throw new Error(
      `${python} has no Synapse: "python3 -m venv there && there/bin/pip install matrix-synapse" makes one`,
    )
  }
}

export async function startSynapse(options: SynapseOptions): Promise<Synapse> {
  const version = synapseVersion(options.python)
  const directory = await mkdtemp(join(tmpdir(), 'interop-synapse-'))
  const port = await freePort()
  const [configFile, logFile] = [join(directory, 'homeserver.yaml'), join(directory, 'homeserver.log')]
  const words = ['-m', 'synapse.app.homeserver', '-c', configFile]
  await writeFile(configFile, stringify(configOf(options, directory, port)))
  await writeFile(join(directory, 'log.yaml'), stringify(logConfig(logFile)))
  execFileSync(options.python, [...words, '--generate-keys'], { cwd: directory, stdio: 'ignore' })
  const baseUrl = `http://127.0.0.1:${port}`
  let child: ChildProcess | undefined

  const isRunning = () => child !== undefined && child.exitCode === null && child.signalCode === null

  const synapse: Synapse = {
    baseUrl,
    version,
    logFile,
    async start() {
      child = spawn(options.python, words, { cwd: directory })
      const out = createWriteStream(join(directory, 'out'), { flags: 'a' })
      child.stdout?.pipe(out)
      child.stderr?.pipe(out)
      await waitUntil(
        `Synapse (${directory})`,
        async () => {
          if (!isRunning()) throw new Error(`Synapse ended before it was ready; see ${directory}`)
          return fetch(`${baseUrl}/health`).then(
            ({ ok }) => ok,
            () => false,
          )
        },
        { timeoutMs: READY_TIMEOUT_MS, everyMs: 100 },
      )
    },
    async kill(signal) {
      child?.kill(signal)
      await waitUntil('the end of Synapse', () => !isRunning())
    },
    async dispose(keep) {
      if (isRunning()) await synapse.kill('SIGTERM').catch(() => synapse.kill('SIGKILL'))
      if (!keep) await rm(directory, { recursive: true, force: true })
    },
  }
  await synapse.start().catch(async (error: unknown) => {
    await synapse.dispose(true)
    throw error
  })
  return synapse
}
