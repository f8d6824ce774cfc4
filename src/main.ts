#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { type Command, EXIT, EXIT_MEANINGS, type Host, UsageError } from './cli/command.ts'
import { configCommand } from './cli/config.ts'
import { initCommand } from './cli/init.ts'
import { keysCommand } from './cli/keys.ts'
import { migrateCommand } from './cli/migrate.ts'
import { serveCommand } from './cli/serve.ts'
import { userCommand } from './cli/user.ts'
import { ConfigError } from './config/load.ts'

const COMMANDS: readonly Command[] = [
  serveCommand,
  initCommand,
  configCommand,
  userCommand,
  keysCommand,
  migrateCommand,
]

const host = makeHost()
process.exitCode = await run(process.argv.slice(2))

async function run(words: readonly string[]): Promise<number> {
  const [name = '--help', ...rest] = words
  if (name === '--version') return say(host.version)
  if (name === '--help' || name === '-h' || name === 'help') return say(overview())
  const command = COMMANDS.find((candidate) => candidate.name === name)
  if (command === undefined) return fail(`there is no "${name}"; see ${host.program} --help`, EXIT.usage)
  if (rest.includes('--help') || rest.includes('-h')) return say(`${host.program} ${name} ${command.usage}`)
  try {
    return await command.run(host, rest)
  } catch (error) {
    return explain(error, command)
  }
}

function explain(error: unknown, command: Command): number {
  if (error instanceof ConfigError) return fail(`The configuration is wrong:\n${error.message}`, EXIT.config)
  const isUsage = error instanceof UsageError || String((error as { code?: unknown }).code).startsWith('ERR_PARSE_ARGS')
  const message = error instanceof Error ? error.message : String(error)
  if (isUsage) return fail(`${message}; see ${host.program} ${command.name} --help`, EXIT.usage)
  return fail(`hearth ${command.name}: ${message}`, EXIT.failure)
}

function say(text: string): number {
  host.print(text)
  return EXIT.ok
}

function fail(text: string, code: number): number {
  host.complain(text)
  return code
}

function overview(): string {
  const commands = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(9)} ${summary}`)
  const codes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padEnd(9)} ${meaning}`)
  return [
    `Hearth ${host.version}, a homeserver.\n`,
    `Usage: ${host.program} COMMAND [OPTIONS]; ${host.program} COMMAND --help says more\n`,
    ...commands,
    '\nExit codes:\n',
    ...codes,
  ].join('\n')
}

function makeHost(): Host {
  const manifest = new URL('../package.json', import.meta.url)
  const program = process.argv[1] ?? 'hearth'
  return {
    env: process.env,
    directory: process.cwd(),
    uid: process.getuid?.() ?? -1,
    isTerminal: process.stdout.isTTY === true,
    version: (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version,
    nodeVersion: process.versions.node,
    program: basename(program) === 'hearth' ? 'hearth' : `node ${relative(process.cwd(), program)}`,
    print: (text) => process.stdout.write(`${text}\n`),
    complain: (text) => process.stderr.write(`${text}\n`),
    askSecret,
    stopSignal,
    onCrash,
  }
}

/** The first SIGTERM or SIGINT asks to stop; the second SIGINT does not wait. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted && name === 'SIGINT') process.exit(EXIT.failure)
      controller.abort()
    })
  }
  return controller.signal
}

/** A promise that nobody waits for counts too. Postgres, when it is ours, stops by itself once this process is gone. */
function onCrash(report: (error: unknown) => void): void {
  process.on('uncaughtException', (error) => {
    report(error)
    process.exit(EXIT.failure)
  })
}

async function askSecret(question: string): Promise<string> {
  const isTerminal = process.stdin.isTTY === true
  if (isTerminal) process.stderr.write(question)
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: silence, terminal: isTerminal })
  try {
    for await (const line of lines) return line
    return ''
  } finally {
    lines.close()
    if (isTerminal) process.stderr.write('\n')
  }
}
