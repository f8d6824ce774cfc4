import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { probeTurn } from '../../src/cli/doctor/turn-probe.ts'
import { freePort } from './free-port.ts'

const PROGRAM = '/usr/bin/turnserver'

/** Where Debian's coturn is not installed, a test says `describe.skipIf(!hasCoturn())`. */
export function hasCoturn(): boolean {
  if (existsSync(PROGRAM)) return true
  console.warn('coturn is not installed: the tests of TURN are skipped')
  return false
}

export interface Coturn {
  readonly port: number
  readonly uris: readonly string[]
  /** What it has written so far. */
  output(): string
  close(): Promise<void>
}

/** A TURN server on loopback. @param credentials `static-auth-secret`, or a fixed user */
export async function startCoturn(
  credentials: { readonly secret: string } | { readonly user: string; readonly password: string },
): Promise<Coturn> {
  const port = await freePort()
  const directory = await mkdtemp(join(tmpdir(), 'hearth-coturn-'))
  const access =
    'secret' in credentials
      ? ['--use-auth-secret', `--static-auth-secret=${credentials.secret}`]
      : ['--lt-cred-mech', `--user=${credentials.user}:${credentials.password}`]
  const child = spawn(
    PROGRAM,
    [
      ...['-n', '--listening-ip=127.0.0.1', '--relay-ip=127.0.0.1', `--listening-port=${port}`, '--realm=turn.test'],
      ...['--no-tls', '--no-dtls', '--no-cli', '--allow-loopback-peers', '--log-file=stdout', '--simple-log'],
      ...['--min-port=40000', '--max-port=49000', `--userdb=${join(directory, 'users')}`, ...access, '--verbose'],
      `--pidfile=${join(directory, 'pid')}`,
    ],
    { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += piece))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const deadline = performance.now() + 45_000
  const nobody = { username: 'nobody', password: 'x' }
  while ((await probeTurn({ host: '127.0.0.1', port, transport: 'tcp' }, nobody)).kind === 'silent') {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`coturn does not start: ${output}`)
    await pause(50)
  }
  return {
    port,
    uris: [`turn:127.0.0.1:${port}?transport=udp`],
    output: () => output,
    async close() {
      child.kill('SIGKILL')
      await ended
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Asks for an allocation of RFC 8656. @returns 0 if it is granted, else the error's code */
export async function allocate(port: number, credentials: { username: string; password: string }): Promise<number> {
  const verdict = await probeTurn({ host: '127.0.0.1', port, transport: 'udp' }, credentials)
  if (verdict.kind === 'silent') throw new Error(verdict.detail)
  return verdict.kind === 'granted' ? 0 : verdict.code
}
