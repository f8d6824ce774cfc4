import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Json } from '../../test/support/api.ts'
import { PROJECT_ROOT } from '../../test/support/project.ts'

/** The clients of two people on matrix-rust-sdk, in a process of their own. */
export interface RustClients {
  /** @throws Error with what the client says when it cannot */
  ask(who: string, act: string, words?: object): Promise<Json>
  /** What it wrote to standard error. */
  complaints(): string
  close(): Promise<void>
}

const SOURCE = join(PROJECT_ROOT, 'scripts/interop/rust-sdk')
const MAX_COMPLAINTS = 1 << 20

/** Compiles the program, and says which SDK is in it. @throws Error when there is no Rust, or it does not compile */
export function buildRustClients(jobs: string): { program: string; version: string } {
  const target = process.env.CARGO_TARGET_DIR ?? join(tmpdir(), 'hearth-interop-rust')
  const words = ['build', '--jobs', jobs, '--target-dir', target]
  const { status, error } = spawnSync('cargo', words, { cwd: SOURCE, stdio: 'inherit' })
  if (error) throw new Error(`there is no cargo (${error.message}): install Rust, 1.93 or newer`)
  if (status !== 0) throw new Error(`cargo ended with ${status}`)
  const { stdout } = spawnSync('cargo', ['pkgid', 'matrix-sdk'], { cwd: SOURCE, encoding: 'utf8' })
  return { program: join(target, 'debug/hearth-interop'), version: stdout.trim().split(/[@#]/).at(-1)! }
}

export function startRustClients(program: string): RustClients {
  const child: ChildProcess = spawn(program, { stdio: ['pipe', 'pipe', 'pipe'] })
  const waiting: { resolve: (value: Json) => void; reject: (error: Error) => void }[] = []
  let complaints = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    complaints = (complaints + chunk.toString()).slice(-MAX_COMPLAINTS)
  })
  createInterface({ input: child.stdout! }).on('line', (line) => {
    const { value, error } = JSON.parse(line)
    const next = waiting.shift()
    if (error === undefined) next?.resolve(value)
    else next?.reject(new Error(error))
  })
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      for (const { reject } of waiting.splice(0)) reject(new Error(`the clients ended: ${complaints.slice(-500)}`))
      resolve()
    })
  })
  return {
    ask(who, act, words = {}) {
      return new Promise((resolve, reject) => {
        if (child.exitCode !== null) return reject(new Error('the clients have ended'))
        waiting.push({ resolve, reject })
        child.stdin!.write(`${JSON.stringify({ who, do: act, ...words })}\n`)
      })
    },
    complaints: () => complaints,
    async close() {
      child.stdin!.end()
      child.kill('SIGTERM')
      await ended
    },
  }
}
