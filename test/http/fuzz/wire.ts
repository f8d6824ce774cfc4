import { connect } from 'node:net'
import type { Pool } from 'undici'

/** How the bytes of a request travel. */
export type Framing = 'whole' | 'chunked' | 'half a body' | 'half a chunk' | 'two lengths' | 'length and chunks'

export interface Request {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | undefined
  readonly framing: Framing
}

export interface Answer {
  /** 0 when the server closed the connection without a word, which only a broken-off request deserves. */
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** Sends over a kept connection what is HTTP, and byte by byte what is not. */
export async function send(pool: Pool, origin: string, request: Request): Promise<Answer> {
  const { method, path, headers, body, framing } = request
  // The client library refuses to send such paths.
  if (framing !== 'whole' || !/^\/[\u0021-\u007e]*$/.test(path)) return sendRaw(origin, request)
  const answer = await pool.request({ method: method as 'GET', path, headers, body: body ?? null })
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() }
}

function frame(bytes: Buffer, framing: Framing): [header: string, body: Buffer] {
  const length = `content-length: ${bytes.length}\r\n`
  const chunked = 'transfer-encoding: chunked\r\n'
  const chunk = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes])
  switch (framing) {
    case 'chunked':
      return [
        chunked,
        bytes.length === 0 ? Buffer.from('0\r\n\r\n') : Buffer.concat([chunk, Buffer.from('\r\n0\r\n\r\n')]),
      ]
    case 'half a body':
      return [`content-length: ${bytes.length + 10}\r\n`, bytes]
    case 'half a chunk':
      return [chunked, chunk.subarray(0, Math.ceil(chunk.length / 2))]
    case 'two lengths':
      return [`${length}content-length: ${bytes.length + 1}\r\n`, bytes]
    case 'length and chunks':
      return [length + chunked, Buffer.concat([chunk, Buffer.from('\r\n0\r\n\r\n')])]
    default:
      return [length, bytes]
  }
}

function sendRaw(origin: string, { method, path, headers, body, framing }: Request): Promise<Answer> {
  const { hostname, port } = new URL(origin)
  const [length, bytes] = frame(Buffer.from(body ?? ''), framing)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\n${lines.join('')}${length}connection: close\r\n\r\n`
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(port), hostname, () => {
      socket.write(Buffer.concat([Buffer.from(head, 'latin1'), bytes]))
      if (framing.startsWith('half')) socket.end()
    })
    socket.setTimeout(5000, () => socket.destroy(new Error(`no answer to ${head}`)))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('close', () => resolve(parse(Buffer.concat(chunks).toString())))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // The server may close before it has read all that was sent.
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
  })
}

function parse(text: string): Answer {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [status = '', ...lines] = head.split('\r\n')
  const headers = lines
    .map((line) => line.split(/: (.*)/s).slice(0, 2))
    .map(([name = '', value = '']) => [name.toLowerCase(), value])
  return {
    status: Number(status.split(' ')[1] ?? 0),
    headers: Object.fromEntries(headers),
    text: rest.join('\r\n\r\n'),
  }
}
