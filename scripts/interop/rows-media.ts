import { randomBytes } from 'node:crypto'
import sharp from 'sharp'
import type { Json } from '../../test/support/api.ts'
import { bothWays, type Row } from './row.ts'
import { expect } from './seen.ts'
import type { Side } from './sides.ts'

const FILE_BYTES = 5_000_000
const THUMBNAIL = { width: 96, height: 96 }

async function fetched(side: Side, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { ...init.headers, authorization: `Bearer ${side.person.account.token}` }
  const response = await fetch(side.api.baseUrl + path, { ...init, headers })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response
}

/** Gives server and id of what was put there. */
async function put(side: Side, body: Buffer, type: string, name: string): Promise<string> {
  const headers = { 'content-type': type }
  const path = `/_matrix/media/v3/upload?filename=${encodeURIComponent(name)}`
  const answer = (await (await fetched(side, path, { method: 'POST', headers, body })).json()) as Json
  return answer.content_uri.replace('mxc://', '')
}

export const mediaRows: readonly Row[] = [
  ...bothWays(
    `{guest} reads a file of {host}, of ${FILE_BYTES / 1e6} MB`,
    async (host, guest) => {
      const file = randomBytes(FILE_BYTES)
      const place = await put(host, file, 'application/octet-stream', 'noise.bin')
      const response = await fetched(guest, `/_matrix/client/v1/media/download/${place}`)
      expect('it is the same to the byte', Buffer.from(await response.arrayBuffer()).equals(file))
      expect('it has its name', response.headers.get('content-disposition')?.includes('noise.bin') === true)
    },
    'once',
  ),
  ...bothWays(
    '{guest} shows a thumbnail of an image of {host}',
    async (host, guest) => {
      const create = { width: 640, height: 480, channels: 3, background: '#c2410c' } as const
      const place = await put(host, await sharp({ create }).png().toBuffer(), 'image/png', 'ember.png')
      const { width, height } = THUMBNAIL
      const path = `/_matrix/client/v1/media/thumbnail/${place}?width=${width}&height=${height}&method=crop`
      const response = await fetched(guest, path)
      const found = await sharp(Buffer.from(await response.arrayBuffer())).metadata()
      expect('it has the size that was asked for', found.width === width && found.height === height)
      expect('it is told as a picture', response.headers.get('content-type')?.startsWith('image/') === true)
    },
    'once',
  ),
]
