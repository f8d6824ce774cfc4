#!/usr/bin/env node
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { basename, relative } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { type ChildOutcome, EXIT, type Host } from './cli/command.ts'
import { giveWay, giveWayFromStart } from './cli/give-way.ts'
import { runProgram } from './cli/program.ts'
import { NODE_ORDERS } from './cli/serve/nodes/child.ts'

/** Handles that a failed command left open keep the process no longer than this. */
const LEFTOVERS_MS = 1_000
const IMPATIENT_MS = 500
const MAX_CHILD_OUTPUT = 16_384

process.exitCode = await runProgram(makeHost(), process.argv.slice(2))
setTimeout(() => process.exit(), LEFTOVERS_MS).unref()

function makeHost(): Host {
  const manifest = new URL('../package.json', import.meta.url)
  const program = process.argv[1] ?? 'hearth'
  const env = Object.assign({}, process.env)
  // A secret is in it, which nothing has to know that this process starts.
  delete process.env[NODE_ORDERS]
  return {
    env,
    directory: process.cwd(),
    uid: process.getuid?.() ?? -1,
    isTerminal: process.stdout.isTTY === true,
    version: (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version,
    nodeVersion: process.versions.node,
    program: basename(program) === 'hearth' ? 'hearth' : `node ${relative(process.cwd(), program)}`,
    residentBytes: () => process.memoryUsage.rss(),
    memoryBytes: () => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
    print: (text) => process.stdout.write(`${text}\n`),
    complain: (text) => process.stderr.write(`${text}\n`),
    draw: (text) => process.stderr.write(text),
    runBeside,
    giveWay,
    askSecret,
    stopSignal: () => stopSignal(env[NODE_ORDERS] !== undefined),
    onReload: (reload) => void process.on('SIGHUP', reload),
    onRestart: (restart) => void process.on('SIGUSR2', restart),
    onCrash,
  }
}

/**
 * The first SIGTERM or SIGINT asks to stop. A later SIGINT does not wait; npm passes on a Ctrl-C that the terminal also gives us, so not at once.
 *
 * @param hasParent whether a process of ours started this one as a node. Others that do, such as pm2, stop it by SIGINT
 */
function stopSignal(hasParent: boolean): AbortSignal {
  const controller = new AbortController()
  let since = 0
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      // A Ctrl-C also goes to the process that started this node, and that one says when each node stops.
      if (name === 'SIGINT' && hasParent) return
      if (!controller.signal.aborted) since = Date.now()
      controller.abort()
      if (name === 'SIGINT' && Date.now() - since > IMPATIENT_MS) process.exit(EXIT.failure)
    })
  }
  return controller.signal
}

/** Reports an uncaught error or rejection and ends the process. An embedded Postgres stops by itself when this process is gone. */
function onCrash(report: (error: unknown) => void): void {
  process.on('uncaughtException', (error) => {
    report(error)
    process.exit(EXIT.failure)
  })
}

function runBeside(words: readonly string[], signal: AbortSignal): Promise<ChildOutcome> {
  const args = [...process.execArgv, process.argv[1] ?? '', ...words]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], signal })
  giveWayFromStart(child.pid)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-MAX_CHILD_OUTPUT)
    })
  }
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: null, output: `${output}${error.message}` }))
    child.once('close', (code) => resolve({ code, output }))
  })
}

async function askSecret(question: string): Promise<string> {
  const isTerminal = process.stdin.isTTY === true
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: silence, terminal: isTerminal })
  // Asked only now that the terminal no longer shows what is typed.
  if (isTerminal) process.stderr.write(question)
  try {
    for await (const line of lines) return line
    return ''
  } finally {
    lines.close()
    if (isTerminal) process.stderr.write('\n')
  }
}
