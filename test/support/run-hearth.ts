import { spawn } from 'node:child_process'
import { join } from 'node:path'
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
