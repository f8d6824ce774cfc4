import { parseArgs } from 'node:util'
import type { Config } from '../config/schema.ts'
import { readMxc } from '../core/mxc.ts'
import { type Administration, userNamed, withAdministration } from './administration.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'
import { moveMedia } from './media/media-move.ts'
import type { StoreName } from './media/media-stores.ts'
import { verifyMedia } from './media/media-verify.ts'
import { minute, table } from './table.ts'

const OPTIONS = {
  ...CONFIG_OPTIONS,
  json: { type: 'boolean' },
  days: { type: 'string' },
  store: { type: 'string' },
  to: { type: 'string' },
  remove: { type: 'boolean' },
} as const
const AT = '/_synapse/admin/v1'
const DAY_MS = 24 * 60 * 60 * 1000
const PAGE = 1_000

export const mediaCommand: Command = {
  usage: `list USER [--json] | usage [--json]
       media delete MEDIA | delete USER
       media quarantine MEDIA | unquarantine MEDIA
       media purge --days N
       media verify [--store directory | s3]
       media move --to directory | s3 [--remove]
       all with [--config FILE] [--set KEY=VALUE]...

  list         what a user has uploaded: name, size, type, file name, when it was uploaded and last looked at
  usage        what users have uploaded, in sum, the largest first
  delete       removes one file, or all that a user has uploaded
  quarantine   hides a file, and whatever has the same bytes, from everybody; unquarantine shows it again
  purge        forgets files of other servers that nobody looked at for so many days
  verify       reads every file and compares its hash; a line for each that is missing or damaged, and then exit code 1
  --store      the store to read, where it is not media.store
  move         copies all files between the disk and S3, each compared by its hash; one that is interrupted goes on.
               Run it, set media.store and restart the server, and run it again for what came in between
  --remove     also takes out of the former store what can be read back from the new one
  MEDIA        mxc://server/id
  USER         alice, or @alice:example.org
  --json       for programs

The server may run meanwhile or not.`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: OPTIONS, allowPositionals: true })
    const { config } = readConfig(host, values)
    const [action] = positionals
    if (positionals.length === 1 && action === 'verify')
      return verifyMedia(host, config, values.store === undefined ? undefined : storeNamed(values.store))
    if (positionals.length === 1 && action === 'move')
      return moveMedia(host, config, storeNamed(values.to), values.remove ?? false)
    const work = workOf(positionals, values, config)
    if (work === undefined)
      throw new UsageError(
        'say "list USER", "usage", "delete", "quarantine" or "unquarantine MEDIA", "purge --days N", "verify" or "move"',
      )
    host.print(await withAdministration(host, config, work))
    return EXIT.ok
  },
}

function storeNamed(name: string | undefined): StoreName {
  if (name === 'directory' || name === 's3') return name
  throw new UsageError('the stores are "directory" and "s3"')
}

interface Values {
  readonly json?: boolean
  readonly days?: string
}

type Work = (api: Administration) => Promise<string>

function workOf(positionals: readonly string[], values: Values, config: Config): Work | undefined {
  const [action, name, ...rest] = positionals
  if (rest.length > 0) return undefined
  if (action === 'usage' && name === undefined) return (api) => usage(api, values)
  if (action === 'purge' && name === undefined) return (api) => purge(api, values)
  if (name === undefined) return undefined
  if (action === 'list') return (api) => list(api, userNamed(name, config), values)
  if (action === 'delete' && !name.startsWith('mxc:'))
    return (api) => removeAll(api, `users/${encoded(name, config)}/media`)
  const mxc = readMxc(name)
  if (mxc === undefined) return undefined
  const path = `${mxc.server}/${mxc.mediaId}`
  if (action === 'delete') return (api) => remove(api, `media/${path}`)
  if (action !== 'quarantine' && action !== 'unquarantine') return undefined
  return async (api) => {
    await api.call('POST', `${AT}/media/${action}/${path}`)
    return action === 'quarantine' ? `${name} is hidden.` : `${name} is shown.`
  }
}

const encoded = (name: string, config: Config): string => encodeURIComponent(userNamed(name, config))

interface ListedMedia {
  readonly media_id: string
  readonly media_length: number
  readonly media_type: string | null
  readonly upload_name: string | null
  readonly created_ts: number
  readonly last_access_ts: number
  readonly quarantined_by: string | null
}

async function list(api: Administration, user: string, { json }: Values): Promise<string> {
  const media: ListedMedia[] = await all(api, `users/${encodeURIComponent(user)}/media`, 'media')
  if (json) return JSON.stringify(media, undefined, 2)
  const rows = media.map((one) => [
    ...[one.media_id, String(one.media_length), one.media_type ?? '-', one.upload_name ?? '-'],
    ...[minute(one.created_ts), minute(one.last_access_ts), one.quarantined_by === null ? '' : 'hidden'],
  ])
  return table([['id', 'bytes', 'type', 'file name', 'uploaded', 'looked at', ''], ...rows])
}

interface Usage {
  readonly user_id: string
  readonly media_count: number
  readonly media_length: number
}

async function usage(api: Administration, { json }: Values): Promise<string> {
  const users: Usage[] = await all(api, 'statistics/users/media?order_by=media_length&dir=b', 'users')
  if (json) return JSON.stringify(users, undefined, 2)
  const rows = users.map((one) => [one.user_id, String(one.media_count), String(one.media_length)])
  return table([['user', 'files', 'bytes'], ...rows])
}

// biome-ignore lint/suspicious/noExplicitAny: answers of our own endpoints
async function all(api: Administration, path: string, key: string): Promise<any[]> {
  const found: unknown[] = []
  const joint = path.includes('?') ? '&' : '?'
  for (let from: number | undefined = 0; from !== undefined; ) {
    const page = await api.call('GET', `${AT}/${path}${joint}limit=${PAGE}&from=${from}`)
    found.push(...page[key])
    from = page.next_token as number | undefined
  }
  return found
}

const removed = (total: number): string => `${total} ${total === 1 ? 'file is' : 'files are'} removed.`

async function remove(api: Administration, path: string): Promise<string> {
  return removed((await api.call('DELETE', `${AT}/${path}`)).total)
}

/** A page at a time. */
async function removeAll(api: Administration, path: string): Promise<string> {
  for (let all = 0; ; ) {
    const { total } = await api.call('DELETE', `${AT}/${path}?limit=${PAGE}`)
    all += total
    if (total === 0) return removed(all)
  }
}

async function purge(api: Administration, { days }: Values): Promise<string> {
  if (days === undefined || !/^\d{1,5}$/.test(days)) throw new UsageError('--days is a number of days')
  const { deleted } = await api.call('POST', `${AT}/purge_media_cache?before_ts=${Date.now() - Number(days) * DAY_MS}`)
  return `${deleted} ${deleted === 1 ? 'file' : 'files'} of other servers ${deleted === 1 ? 'is' : 'are'} forgotten.`
}
