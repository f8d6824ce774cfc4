import { parseArgs } from 'node:util'

export interface BenchOptions {
  readonly names: readonly string[]
  /** A homeserver to drive instead of one of ours. */
  readonly url?: string
  readonly serverName: string
  readonly registrationToken?: string
  readonly serverPid?: number
  readonly postgresPid?: number
  readonly databaseUrl?: string
  readonly seconds: number
  readonly minutes: number
  readonly share: number
  readonly members: readonly number[]
  readonly rooms: number
  readonly bindings: number
  readonly remoteMembers: number
  readonly gigabytes: number
  readonly withRestore: boolean
  readonly withFloor: boolean
  readonly rounds: number
  readonly profile: boolean
  readonly write: boolean
}

export const USAGE = `npm run bench -- [benchmark ...] [options]

Benchmarks: send, fan-out, initial-sync, register-login, login-storm, sign-ins, idle, soak, noop-sync, storage, room-state, resolution, receive,
to-device, identity-lookup, keys, media, federation-join, federation-in, federation-out,
federation-dead, relations, search, user-directory, today, ignored, appservice, push, sliding-start, sliding-noop,
sliding-fan-out, sliding-crowd, attack-bodies, attack-fan-out, attack-sync, attack-readers, backup, passed-on,
nodes-sync, nodes-send
(all of them when none is named), and the floor programs alone: floor.

  --url http://...          drive this homeserver instead of starting one of ours
  --name NAME               what to call it in the table
  --registration-token T    where making accounts needs one
  --server-pid N            its process, for CPU and memory (same machine)
  --postgres-pid N          its postmaster, likewise
  --database-url URL        its database, for bytes on disk and the check that commits are durable
  --seconds N               length of one measurement (10)
  --minutes N               length of soak (2); 30 shows what the project promises
  --share N                 how much of a processor each node has where its share is fixed, in nodes-sync and nodes-send (0.5)
  --members N,N             listeners of fan-out (100,1000)
  --rooms N                 rooms of initial-sync (200)
  --bindings N              bound addresses of identity-lookup (1000000)
  --remote-members N        members of the room of federation-join (50000)
  --gigabytes N             of rows and media for backup (0.3); 5 and 10 show what the project promises
  --no-restore              leave the restore out of backup
  --no-floor                leave out the floor programs
  --rounds N                run floor programs and benchmarks N times in turn, and show medians (1)
  --profile                 run our server under --cpu-prof; profiles land in bench/profiles
  --write                   write the table into bench/RESULTS.md`

const OPTIONS = {
  url: { type: 'string' },
  name: { type: 'string' },
  'registration-token': { type: 'string' },
  'server-pid': { type: 'string' },
  'postgres-pid': { type: 'string' },
  'database-url': { type: 'string' },
  seconds: { type: 'string', default: '10' },
  minutes: { type: 'string', default: '2' },
  share: { type: 'string', default: '0.5' },
  members: { type: 'string', default: '100,1000' },
  rooms: { type: 'string', default: '200' },
  bindings: { type: 'string', default: '1000000' },
  'remote-members': { type: 'string', default: '50000' },
  gigabytes: { type: 'string', default: '0.3' },
  'no-restore': { type: 'boolean', default: false },
  'no-floor': { type: 'boolean', default: false },
  rounds: { type: 'string', default: '1' },
  profile: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

export function readOptions(args: string[]): BenchOptions | undefined {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true })
  if (values.help) return undefined
  return {
    names: positionals,
    ...(values.url === undefined ? {} : { url: values.url.replace(/\/$/, '') }),
    serverName: values.name ?? (values.url === undefined ? 'Hearth' : values.url),
    ...(values['registration-token'] === undefined ? {} : { registrationToken: values['registration-token'] }),
    ...(values['server-pid'] === undefined ? {} : { serverPid: Number(values['server-pid']) }),
    ...(values['postgres-pid'] === undefined ? {} : { postgresPid: Number(values['postgres-pid']) }),
    ...(values['database-url'] === undefined ? {} : { databaseUrl: values['database-url'] }),
    seconds: Number(values.seconds),
    rounds: Number(values.rounds),
    minutes: Number(values.minutes),
    share: Number(values.share),
    members: values.members.split(',').map(Number),
    rooms: Number(values.rooms),
    bindings: Number(values.bindings),
    remoteMembers: Number(values['remote-members']),
    gigabytes: Number(values.gigabytes),
    withRestore: !values['no-restore'],
    withFloor: !values['no-floor'],
    profile: values.profile,
    write: values.write,
  }
}
