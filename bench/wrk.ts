import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PROJECT_ROOT } from '../test/support/project.ts'

export interface WrkRun {
  readonly requests: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers of 400 and above. */
  readonly rejected: number
  /** Connections that failed or timed out. */
  readonly broken: number
}

export interface WrkLoad {
  readonly script: 'send.lua' | 'get.lua' | 'post.lua'
  readonly url: string
  readonly connections: number
  readonly seconds: number
  /** One line per client, taken in turn by the requests. */
  readonly clients: readonly string[]
  readonly word?: string
}

const SCRIPTS = join(PROJECT_ROOT, 'bench/wrk')
const ADVICE = 'wrk is missing: it generates the load ("apt install wrk", "brew install wrk")'

/** One thread, `connections` requests in flight at any time. Every answer must be a success. */
export async function runWrk(load: WrkLoad): Promise<WrkRun> {
  const directory = await mkdtemp(join(tmpdir(), 'hearth-bench-'))
  try {
    const clients = join(directory, 'clients')
    await writeFile(clients, `${load.clients.join('\n')}\n`)
    const flags = ['-t1', `-c${load.connections}`, `-d${load.seconds}s`, '--timeout', '60s', '--latency']
    const script = ['-s', join(SCRIPTS, load.script), load.url, '--', clients, load.word ?? '']
    const output = await collect('wrk', [...flags, ...script])
    const result = /^RESULT (.*)$/m.exec(output)?.[1]
    if (result === undefined) throw new Error(`wrk gave no result:\n${output}`)
    const run: WrkRun = JSON.parse(result)
    if (run.rejected + run.broken > 0) {
      throw new Error(`${run.rejected} of ${run.requests} requests were rejected, ${run.broken} broke`)
    }
    return run
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function collect(command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    }
    child.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'ENOENT' ? new Error(ADVICE) : error)
    })
    child.once('close', () => resolve(output))
  })
}
