import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { Json } from '../../support/api.ts'
import { json, type TlsHandler } from '../../support/tls-server.ts'

/** Bytes that were sent without end by this process. */
export const poured = { bytes: 0 }

const begin = (response: ServerResponse, headers = {}) =>
  response.writeHead(200, { 'content-type': 'application/json', ...headers })

/** One byte a second, of something that never ends. */
const drips: TlsHandler = (_request, response) => {
  begin(response).write('{')
  const drop = setInterval(() => response.write(' '), 1000)
  response.on('close', () => clearInterval(drop))
}

/** As fast as it goes, until the other side hangs up. */
const pours: TlsHandler = (_request, response) => {
  begin(response)
  const chunk = Buffer.alloc(65_536, 0x20)
  const more = () => {
    let isTaken = true
    while (!response.destroyed && isTaken) {
      poured.bytes += chunk.length
      isTaken = response.write(chunk)
    }
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}

const sentOn =
  (status: number) =>
  (location: Json): TlsHandler =>
  (_request, response) =>
    void response.writeHead(status, { location }).end()

let bomb: Buffer | undefined
const packed: TlsHandler = (_request, response) => {
  bomb ??= gzipSync(Buffer.alloc(50_000_000, 0x20))
  begin(response, { 'content-encoding': 'gzip' }).end(bomb)
}

/** How it answers whatever it is asked, by what it does, with what it is told with. */
export const MANNERS: Readonly<Record<string, (detail: Json) => TlsHandler>> = {
  drips: () => drips,
  'is silent': () => () => undefined,
  'without end': () => pours,
  'that is small until it is unpacked': () => packed,
  'that sends us on (301)': sentOn(301),
  'that sends us on (307)': sentOn(307),
  'that sends us on (308)': sentOn(308),
  'with a header that is too long': () => (_request, response) =>
    begin(response, { 'x-long': 'x'.repeat(60_000) }).end('{}'),
  'that breaks off': () => (_request, response) =>
    void begin(response, { 'content-length': '1000' }).write('{', () => response.destroy()),
  'that logs us out': (status) =>
    json({ errcode: 'M_UNKNOWN_TOKEN', error: 'log out now', soft_logout: false }, status),
}
