#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { type Command, EXIT, EXIT_MEANINGS, type Host, UsageError } from './cli/command.ts'
import { holdYoungGeneration } from './cli/young-generation.ts'
import { ConfigError } from './config/load.ts'

interface Verb {
  readonly summary: string
  /** Loaded when it is asked for: a short command need not wait for the whole server. */
  load(): Promise<Command>
}

const VERBS: Readonly<Record<string, Verb>> = {
  serve: {
    summary: 'run the server',
    async load() {
      holdYoungGeneration()
      return (await import('./cli/serve.ts')).serveCommand
    },
  },
  init: {
    summary: 'write a configuration file and make the signing key',
    load: async () => (await import('./cli/init.ts')).initCommand,
  },
  config: {
    summary: 'check the configuration, or print what is in force',
    load: async () => (await import('./cli/config.ts')).configCommand,
  },
  doctor: {
    summary: 'look at the server from outside inwards, and say what is wrong and what to do',
    load: async () => (await import('./cli/doctor.ts')).doctorCommand,
  },
  user: {
    summary: 'make accounts, list them, administer them',
    load: async () => (await import('./cli/user.ts')).userCommand,
  },
  token: {
    summary: 'make, list and delete registration tokens',
    load: async () => (await import('./cli/token.ts')).tokenCommand,
  },
  audit: {
    summary: 'who administered this server, and how',
    load: async () => (await import('./cli/audit.ts')).auditCommand,
  },
  keys: {
    summary: "show the server's signing key, or put a new one into use",
    load: async () => (await import('./cli/keys.ts')).keysCommand,
  },
  identity: {
    summary: "show or rotate the identity service's keys",
    load: async () => (await import('./cli/identity.ts')).identityCommand,
  },
  room: {
    summary: 'list rooms, look into them, check them, remove them',
    load: async () => (await import('./cli/room.ts')).roomCommand,
  },
  federation: {
    summary: 'go the way to another server step by step, and say what was found',
    load: async () => (await import('./cli/federation.ts')).federationCommand,
  },
  media: {
    summary: 'list files of users, hide them, remove them',
    load: async () => (await import('./cli/media.ts')).mediaCommand,
  },
  migrate: {
    summary: 'bring the database to this release (serve does it too)',
    load: async () => (await import('./cli/migrate.ts')).migrateCommand,
  },
}

/** What a failed command left open does not keep the process longer than this. */
const LEFTOVERS_MS = 1_000
const IMPATIENT_MS = 500

const host = makeHost()
process.exitCode = await run(process.argv.slice(2))
setTimeout(() => process.exit(), LEFTOVERS_MS).unref()

async function run(words: readonly string[]): Promise<number> {
  const [name = '--help', ...rest] = words
  if (name === '--version') return say(host.version)
  if (name === '--help' || name === '-h' || name === 'help') return say(overview())
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined
  if (verb === undefined) return fail(`there is no "${name}"; see ${host.program} --help`, EXIT.usage)
  try {
    const command = await verb.load()
    if (rest.includes('--help') || rest.includes('-h')) return say(`${host.program} ${name} ${command.usage}`)
    return await command.run(host, rest)
  } catch (error) {
    return explain(error, name)
  }
}

function explain(error: unknown, verb: string): number {
  if (error instanceof ConfigError) return fail(`The configuration is wrong:\n${error.message}`, EXIT.config)
  const isUsage = error instanceof UsageError || String((error as { code?: unknown }).code).startsWith('ERR_PARSE_ARGS')
  const message = error instanceof Error ? error.message : String(error)
  if (isUsage) return fail(`${message}; see ${host.program} ${verb} --help`, EXIT.usage)
  return fail(`hearth ${verb}: ${message}`, EXIT.failure)
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
  const commands = Object.entries(VERBS).map(([name, { summary }]) => `  ${name.padEnd(11)} ${summary}`)
  const codes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padEnd(11)} ${meaning}`)
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
    onReload: (reload) => void process.on('SIGHUP', reload),
    onCrash,
  }
}

/** The first SIGTERM or SIGINT asks to stop. A later SIGINT does not wait; npm passes on a Ctrl-C that the terminal also gives us, so not at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  let since = 0
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (!controller.signal.aborted) since = Date.now()
      controller.abort()
      if (name === 'SIGINT' && Date.now() - since > IMPATIENT_MS) process.exit(EXIT.failure)
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
