import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Host } from '../../src/cli/command.ts'
import { runProgram } from '../../src/cli/program.ts'
import { PROJECT_ROOT } from './project.ts'

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly directory: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
}

/** Runs the built program to its end, as an operator does. */
export function runHearth(words: readonly string[], { directory, env = {}, input = '' }: RunOptions): Promise<Outcome> {
  const child = spawn(process.execPath, [join(PROJECT_ROOT, 'dist/main.js'), ...words], {
    cwd: directory,
    env: { PATH: process.env.PATH, ...env },
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      output[name] += chunk
    })
  }
  child.stdin.end(input)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, ...output }))
  })
}

/** The same within this process: what is printed and the exit code, in a fraction of the time. */
export async function runProgramHere(
  words: readonly string[],
  { directory, env = {}, input = '' }: RunOptions,
): Promise<Outcome> {
  const output = { stdout: '', stderr: '' }
  const host: Host = {
    ...{
      env,
      directory,
      uid: process.getuid?.() ?? 0,
      isTerminal: false,
      version: '0',
      nodeVersion: '',
      residentBytes: () => 0,
      memoryBytes: () => 1 << 30,
      program: 'hearth',
    },
    print(text) {
      output.stdout += `${text}\n`
    },
    complain(text) {
      output.stderr += `${text}\n`
    },
    draw(text) {
      output.stderr += text
    },
    runBeside: async () => ({ code: null, output: '' }),
    giveWay() {},
    askSecret: async () => input.split('\n')[0]!,
    stopSignal: () => new AbortController().signal,
    onReload() {},
    onRestart() {},
    onCrash() {},
  }
  return { code: await runProgram(host, words), ...output }
}
