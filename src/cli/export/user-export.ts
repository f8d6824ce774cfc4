import { resolve } from 'node:path'
import type { Config } from '../../config/schema.ts'
import type { UserId } from '../../core/ids.ts'
import { findUserNids } from '../../store/accounts/users.ts'
import type { Database } from '../../store/db/db.ts'
import { eventsSentBy } from '../../store/events/user-events.ts'
import { listMediaOf } from '../../store/media/media-survey.ts'
import { type Administration, withAdministration } from '../administration.ts'
import { type Archive, writeArchive } from '../archive/archive.ts'
import type { Host } from '../command.ts'
import { withDatabase } from '../database.ts'
import { openStore } from '../media/media-stores.ts'
import { createLog } from '../serve/log.ts'

const PAGE = 1_000

/**
 * Writes everything that this server keeps of a user into one archive, for the user: profile, devices, account data, rooms, the events that
 * they have sent, and their files. Tokens and keys are not in it, nor what others wrote.
 */
export async function exportUser(host: Host, config: Config, user: string, file: string | undefined): Promise<string> {
  const now = Date.now()
  const path = resolve(host.directory, file ?? `${user.replace(/[^A-Za-z0-9._-]/g, '_')}.tar.gz`)
  const facts = await withAdministration(host, config, (api) => factsOf(api, user))
  const counts = await writeArchive(path, now, async (archive) => {
    for (const [name, fact] of Object.entries(facts))
      await archive.add(`${name}.json`, `${JSON.stringify(fact, undefined, 2)}\n`)
    return withDatabase(host, config, (db) => addKept(host, config, db, user as UserId, archive))
  })
  const lost = counts.lost === 0 ? '' : `; ${counts.lost} files are lost`
  return `${path}: ${counts.events} events and ${counts.files} files of ${user}${lost}.`
}

async function factsOf(api: Administration, user: string): Promise<Readonly<Record<string, unknown>>> {
  const name = encodeURIComponent(user)
  const at = '/_synapse/admin'
  return {
    account: await api.call('GET', `${at}/v2/users/${name}`),
    devices: (await api.call('GET', `${at}/v2/users/${name}/devices`)).devices,
    'account-data': (await api.call('GET', `${at}/v1/users/${name}/accountdata`)).account_data,
    rooms: (await api.call('GET', `${at}/v1/users/${name}/memberships`)).memberships,
    pushers: (await api.call('GET', `${at}/v1/users/${name}/pushers`)).pushers,
  }
}

interface Counts {
  readonly events: number
  readonly files: number
  readonly lost: number
}

async function addKept(host: Host, config: Config, db: Database, user: UserId, archive: Archive): Promise<Counts> {
  const userNid = (await findUserNids(db, [user])).get(user)
  if (userNid === undefined) return { events: 0, files: 0, lost: 0 }
  const events = await addEvents(db, userNid, archive)
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const { store, close } = openStore(config, config.media.store, log)
  let files = 0
  let lost = 0
  try {
    for (let from = 0; ; from += PAGE) {
      const { media } = await listMediaOf(db, userNid, 'media_id', { from, limit: PAGE, isDescending: false })
      await archive.add(`files/list-${from}.json`, `${JSON.stringify(media.map(described), undefined, 2)}\n`)
      for (const { media_id, digest, bytes } of media) {
        const stream = digest === null ? undefined : await store.open(digest)
        if (stream === undefined) lost++
        else {
          await archive.addStream(`files/${media_id.slice(0, 80)}`, bytes ?? 0, stream as AsyncIterable<Buffer>)
          files++
        }
      }
      if (media.length < PAGE) return { events, files, lost }
    }
  } finally {
    await close()
  }
}

function described(one: {
  readonly media_id: string
  readonly content_type: string | null
  readonly file_name: string | null
  readonly created_at: number
}): object {
  const { media_id, content_type, file_name, created_at } = one
  return { media_id, content_type, file_name, uploaded: new Date(created_at).toISOString() }
}

/** As lines of JSON, a thousand events in each file, so that no part must be held in memory. */
async function addEvents(db: Database, userNid: number, archive: Archive): Promise<number> {
  let count = 0
  for (let after = 0, part = 1; ; part++) {
    const events = await eventsSentBy({ query: db.scan }, userNid, after, PAGE)
    const lines = events.map(({ room_id, json }) => JSON.stringify({ ...JSON.parse(json), room_id }))
    if (lines.length > 0) await archive.add(`events/${String(part).padStart(6, '0')}.jsonl`, `${lines.join('\n')}\n`)
    count += events.length
    if (events.length < PAGE) return count
    after = events.at(-1)!.event_nid
  }
}
