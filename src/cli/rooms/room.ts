import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Config } from '../../config/schema.ts'
import type { RoomAlias } from '../../core/ids.ts'
import { openDatabase, type Reader } from '../../store/db/db.ts'
import { planMigrations } from '../../store/db/migrate.ts'
import { getAliases } from '../../store/rooms/aliases.ts'
import { findRoomNid } from '../../store/rooms/rooms.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from '../command.ts'
import { borrowDatabase, MIGRATIONS, postgresDirectory } from '../database.ts'
import { createLog } from '../serve/log.ts'
import { blockRoom, deleteRoom, listRooms, purgeHistory } from './room-administration.ts'
import { inspectRoom } from './room-inspect.ts'
import { largestRooms, roomStatistics } from './room-stats.ts'
import { verifyRoom } from './room-verify.ts'

export const roomCommand: Command = {
  usage: `inspect ROOM [--event EVENT [--state]] [--json]
       room verify ROOM
       room stats [ROOM] [--json]
       room list [--search TEXT] [--json]
       room delete ROOM [--block] [--keep-history] [--new-room-user NAME [--message TEXT]]
       room purge-history ROOM --before EVENT | TIME [--local]
       room block | unblock ROOM
       all with [--config FILE] [--set KEY=VALUE]...

  inspect   where the room stands: version, members, forward extremities, missing events, how its events stand
  verify    checks hashes, ids, signatures, authorisation and state of all events from scratch; a line per finding,
            and exit code 1 if there is one
  stats     how large a room is and how much goes on in it; without ROOM, the rooms that take most of the database
  list      the rooms that this server knows
  delete    puts the users of this server out of a room, then removes all there is of it; waits for the end
  purge-history
            removes the messages before an event or a time; waits for the end. State stays
  block     nobody of this server joins the room any more, whether it is known here or not
  ROOM      a room id or an alias; quote it, since shells know what # and ! mean
  --event   an event of the room: where it stands, what it builds on and cites, why it was rejected or soft-failed
  --state   the whole state before that event
  --json    for programs
  --search  what is in the name, the alias or the id
  --block   also blocks the room
  --before  an event id, or a time such as 2026-01-31 or 2026-01-31T12:00:00Z
  --local   also removes messages of this server's users, of which there may be no other copy
  --keep-history
            puts users out and removes nothing
  --new-room-user
            makes a room in this user's name, to which the others are moved and where --message tells them why

The server may run meanwhile or not. inspect, verify and stats write nothing.`,

  async run(host, words) {
    const options = {
      ...CONFIG_OPTIONS,
      event: { type: 'string' },
      state: { type: 'boolean' },
      json: { type: 'boolean' },
      search: { type: 'string' },
      block: { type: 'boolean' },
      'keep-history': { type: 'boolean' },
      'new-room-user': { type: 'string' },
      message: { type: 'string' },
      before: { type: 'string' },
      local: { type: 'boolean' },
    } as const
    const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
    const [action = '', name, ...rest] = positionals
    if (action === 'list' && name === undefined) return listRooms(host, readConfig(host, values).config, values)
    if (action === 'stats' && name === undefined)
      return largestRooms(host, readConfig(host, values).config, values.json ?? false)
    if (ADMINISTRATION.has(action) && name !== undefined && rest.length === 0) {
      const { config } = readConfig(host, values)
      if (action === 'delete') return deleteRoom(host, config, name, values)
      if (action === 'purge-history') return purgeHistory(host, config, name, values)
      return blockRoom(host, config, name, action === 'block')
    }
    if (!READING.has(action) || name === undefined || rest.length > 0)
      throw new UsageError(
        'say "inspect ROOM", "verify ROOM" or "stats ROOM", or "list", "delete ROOM", "purge-history ROOM", "block ROOM" or "unblock ROOM"',
      )
    if (values.state && values.event === undefined) throw new UsageError('--state is of an event: say --event too')
    const { config } = readConfig(host, values)
    return withSnapshot(host, config, async (reader) => {
      const roomNid = await findRoom(reader, name)
      if (action === 'verify') return verifyRoom(host, config, reader, roomNid)
      const isStats = action === 'stats'
      host.print(
        await (isStats ? roomStatistics(reader, roomNid, values.json ?? false) : inspectRoom(reader, roomNid, values)),
      )
      return EXIT.ok
    })
  },
}

const READING = new Set(['inspect', 'verify', 'stats'])
const ADMINISTRATION = new Set(['delete', 'block', 'unblock', 'purge-history'])

async function findRoom(reader: Reader, name: string): Promise<number> {
  const byAlias = name.startsWith('#') ? (await getAliases(reader, [name as RoomAlias]))[0]?.room_nid : undefined
  const found = byAlias ?? (await findRoomNid(reader, name))
  if (found === undefined) throw new Error(`this server knows no room ${name}`)
  return found
}

/** Runs reads in one snapshot of the database, independent of writers. */
async function withSnapshot<T>(host: Host, config: Config, work: (reader: Reader) => Promise<T>): Promise<T> {
  if (config.database.url === undefined && !existsSync(postgresDirectory(config)))
    throw new Error(`there is no database in ${config.data_dir} yet`)
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const database = await borrowDatabase(config, host.uid, log)
  try {
    const { pending } = await planMigrations(database.connection, MIGRATIONS)
    if (pending.length > 0)
      throw new Error('the database is of an earlier release; bring it to this one: hearth migrate')
    const db = openDatabase({ connection: database.connection, poolSize: 1 })
    try {
      return await db.tx(async (tx) => {
        await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY')
        return work(tx)
      })
    } finally {
      await db.close()
    }
  } finally {
    await database.stop()
  }
}
