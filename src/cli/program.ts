import { ConfigError } from '../config/load.ts'
import { type Command, EXIT, EXIT_MEANINGS, type Host, UsageError } from './command.ts'
import { holdYoungGeneration } from './serve/young-generation.ts'

interface Verb {
  readonly summary: string
  /** Loads the command on use, so that a short command need not load the whole server. */
  load(): Promise<Command>
}

const VERBS: Readonly<Record<string, Verb>> = {
  serve: {
    summary: 'run the server',
    async load() {
      holdYoungGeneration()
      return (await import('./serve/serve.ts')).serveCommand
    },
  },
  init: {
    summary: 'write a configuration file and make the signing key',
    load: async () => (await import('./init.ts')).initCommand,
  },
  config: {
    summary: 'check the configuration, print what is in force, or what differs',
    load: async () => (await import('./config.ts')).configCommand,
  },
  doctor: {
    summary: 'look at the server from outside inwards, and say what is wrong and what to do',
    load: async () => (await import('./doctor.ts')).doctorCommand,
  },
  user: {
    summary: 'make accounts, list them, administer them',
    load: async () => (await import('./user.ts')).userCommand,
  },
  token: {
    summary: 'make, list and delete registration tokens',
    load: async () => (await import('./token.ts')).tokenCommand,
  },
  search: {
    summary: 'make the index of messages again',
    load: async () => (await import('./search.ts')).searchCommand,
  },
  audit: {
    summary: 'who administered this server, and how',
    load: async () => (await import('./audit.ts')).auditCommand,
  },
  keys: {
    summary: "show the server's signing key, or put a new one into use",
    load: async () => (await import('./keys.ts')).keysCommand,
  },
  identity: {
    summary: "the identity service's keys, what it keeps of a person, its invitations, messages and pages",
    load: async () => (await import('./identity/identity.ts')).identityCommand,
  },
  room: {
    summary: 'list rooms, look into them, check and measure them, remove them',
    load: async () => (await import('./rooms/room.ts')).roomCommand,
  },
  federation: {
    summary: 'how sending to other servers goes, and what is on the way to one',
    load: async () => (await import('./federation.ts')).federationCommand,
  },
  crowd: {
    summary: 'end a wave of spam: restrain many accounts at once, redact what they said, hide their files',
    load: async () => (await import('./crowd.ts')).crowdCommand,
  },
  'policy-list': {
    summary: 'lists of bans that this server follows: try one, follow it, end it',
    load: async () => (await import('./policy-list.ts')).policyListCommand,
  },
  media: {
    summary: 'list files of users, hide them, remove them; check all files, move them',
    load: async () => (await import('./media.ts')).mediaCommand,
  },
  backup: {
    summary: 'make a backup of everything, list backups, read one back',
    load: async () => (await import('./backup/backup.ts')).backupCommand,
  },
  restore: {
    summary: 'bring a backup back into an empty database',
    load: async () => (await import('./backup/restore.ts')).restoreCommand,
  },
  'support-bundle': {
    summary: 'collect what a bug report needs, without secrets',
    load: async () => (await import('./support/support-bundle.ts')).supportBundleCommand,
  },
  migrate: {
    summary: 'bring the database to this release (serve does it too)',
    load: async () => (await import('./migrate.ts')).migrateCommand,
  },
}

/** Runs the command of these words and gives an exit code. Never throws. */
export async function runProgram(host: Host, words: readonly string[]): Promise<number> {
  const [name = '--help', ...rest] = words
  if (name === '--version') return say(host, host.version)
  if (name === '--help' || name === '-h' || name === 'help') return say(host, overview(host))
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined
  if (verb === undefined) return fail(host, `there is no "${name}"; see ${host.program} --help`, EXIT.usage)
  try {
    const command = await verb.load()
    if (rest.includes('--help') || rest.includes('-h')) return say(host, `${host.program} ${name} ${command.usage}`)
    return await command.run(host, rest)
  } catch (error) {
    return explain(host, error, name)
  }
}

function explain(host: Host, error: unknown, verb: string): number {
  if (error instanceof ConfigError) return fail(host, `The configuration is wrong:\n${error.message}`, EXIT.config)
  const isUsage = error instanceof UsageError || String((error as { code?: unknown }).code).startsWith('ERR_PARSE_ARGS')
  const message = error instanceof Error ? error.message : String(error)
  if (isUsage) return fail(host, `${message}; see ${host.program} ${verb} --help`, EXIT.usage)
  return fail(host, `hearth ${verb}: ${message}`, EXIT.failure)
}

function say(host: Host, text: string): number {
  host.print(text)
  return EXIT.ok
}

function fail(host: Host, text: string, code: number): number {
  host.complain(text)
  return code
}

function overview(host: Host): string {
  const commands = Object.entries(VERBS).map(([name, { summary }]) => `  ${name.padEnd(14)} ${summary}`)
  const codes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padEnd(14)} ${meaning}`)
  return [
    `Hearth ${host.version}, a homeserver.\n`,
    `Usage: ${host.program} COMMAND [OPTIONS]; ${host.program} COMMAND --help says more\n`,
    ...commands,
    '\nExit codes:\n',
    ...codes,
  ].join('\n')
}
