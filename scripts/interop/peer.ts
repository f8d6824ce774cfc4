import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import { waitUntil } from '../../test/support/wait.ts'

/** Another homeserver, in a process of its own with a temporary folder. */
export interface Peer {
  readonly baseUrl: string
  /** Where it writes what it does. */
  readonly logFile: string
  start(): Promise<void>
  kill(signal: NodeJS.Signals): Promise<void>
  /** Stops it and removes the folder, unless that is to be kept. */
  dispose(keep: boolean): Promise<void>
}

export interface PeerPlace {
  /** What it is called: host and port. */
  readonly name: string
  /** The authority that it is to trust. */
  readonly caFile: string
  readonly directory: string
  /** Where it listens, without TLS. */
  readonly port: number
}

/** How one kind of homeserver is started. */
export interface PeerKind {
  readonly label: string
  readonly version: string
  /** What is to be known of how it is set up, in sentences. */
  readonly remark: string
  /** Writes what it needs into its folder, and says how it is run. */
  prepare(place: PeerPlace): Promise<PeerProgram>
}

export interface PeerProgram {
  readonly command: string
  readonly words: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly healthPath: string
  readonly logFile: string
}

const READY_TIMEOUT_MS = 90_000

export async function startPeer(kind: PeerKind, options: { name: string; caFile: string }): Promise<Peer> {
  const directory = await mkdtemp(join(tmpdir(), 'interop-peer-'))
  const port = await freePort()
  const program = await kind.prepare({ ...options, directory, port })
  const baseUrl = `http://127.0.0.1:${port}`
  let child: ChildProcess | undefined

  const isRunning = () => child !== undefined && child.exitCode === null && child.signalCode === null

  const peer: Peer = {
    baseUrl,
    logFile: program.logFile,
    async start() {
      child = spawn(program.command, program.words, { cwd: directory, env: { ...process.env, ...program.env } })
      const out = createWriteStream(join(directory, 'out'), { flags: 'a' })
      child.stdout?.pipe(out)
      child.stderr?.pipe(out)
      await waitUntil(
        `${kind.label} (${directory})`,
        async () => {
          if (!isRunning()) throw new Error(`${kind.label} ended before it was ready; see ${directory}`)
          return fetch(`${baseUrl}${program.healthPath}`).then(
            ({ ok }) => ok,
            () => false,
          )
        },
        { timeoutMs: READY_TIMEOUT_MS, everyMs: 100 },
      )
    },
    async kill(signal) {
      child?.kill(signal)
      await waitUntil(`the end of ${kind.label}`, () => !isRunning())
    },
    async dispose(keep) {
      if (isRunning()) await peer.kill('SIGTERM').catch(() => peer.kill('SIGKILL'))
      if (!keep) await rm(directory, { recursive: true, force: true })
    },
  }
  await peer.start().catch(async (error: unknown) => {
    await peer.dispose(true)
    throw error
  })
  return peer
}
