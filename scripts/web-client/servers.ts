import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}

export interface Started {
  readonly address: string
  close(): Promise<void>
}

async function start(server: Server): Promise<Started> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Serves a folder, and files made up here. @param made by path, such as `/config.json` */
export function serveSite(folder: string, made: Readonly<Record<string, string>>): Promise<Started> {
  const server = createServer(async (asked, answer) => {
    const path = normalize(new URL(asked.url ?? '/', 'http://x').pathname)
    const name = path === '/' ? '/index.html' : path
    const type = TYPES[extname(name)] ?? 'application/octet-stream'
    const text = made[name]
    if (text !== undefined) return answer.writeHead(200, { 'content-type': type }).end(text)
    const file = join(folder, name)
    const found = await stat(file).catch(() => undefined)
    if (!found?.isFile()) return answer.writeHead(404).end()
    answer.writeHead(200, { 'content-type': type, 'content-length': found.size })
    return createReadStream(file).pipe(answer)
  })
  return start(server)
}

/** A request that a client made, and what the homeserver answered. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly errcode: string | undefined
}

export interface Recorder extends Started {
  readonly asked: readonly Asked[]
}

/** Stands before a homeserver, passes everything on, and notes what was asked and answered. */
export async function startRecorder(homeserver: string): Promise<Recorder> {
  const { hostname, port } = new URL(homeserver)
  const asked: Asked[] = []
  const server = createServer((incoming, outgoing) => {
    const { method = 'GET', url: path = '/', headers } = incoming
    const onward = request({ hostname, port, method, path, headers: { ...headers, host: `${hostname}:${port}` } })
    onward.on('response', (answer) => {
      const status = answer.statusCode ?? 0
      const pieces: Buffer[] = []
      if (status >= 400) answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () => asked.push({ method, path, status, errcode: errcodeOf(Buffer.concat(pieces)) }))
      outgoing.writeHead(status, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  return { ...(await start(server)), asked }
}

function errcodeOf(body: Buffer): string | undefined {
  try {
    return (JSON.parse(body.toString()) as { errcode?: string }).errcode
  } catch {
    return undefined
  }
}
