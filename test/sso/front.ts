import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Certificate } from '../support/certificate.ts'

/** A reverse proxy: it has its address before what stands behind it is there. */
export interface Front {
  readonly origin: string
  readonly port: number
  /** Whom requests are handed to from now on. */
  lead(port: number): void
  close(): Promise<void>
}

export interface FrontOptions {
  readonly host: 'localhost' | '127.0.0.1'
  readonly certificate?: Certificate
  /** Sees each request; true means that it has answered it. */
  readonly seen?: (incoming: IncomingMessage, response: ServerResponse) => boolean
  /** Changes the text of an answer. */
  readonly edit?: (path: string, body: string) => Promise<string>
}

export async function openFront({ host, certificate, seen, edit }: FrontOptions): Promise<Front> {
  let target = 0

  function handle(incoming: IncomingMessage, response: ServerResponse): void {
    if (seen?.(incoming, response)) return
    const { method, url, headers } = incoming
    const onward = request({ host: '127.0.0.1', port: target, method, path: url, headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('end', async () => {
        const body = Buffer.concat(chunks)
        const path = url?.split('?')[0] ?? ''
        const sent =
          edit && /json/.test(answer.headers['content-type'] ?? '') ? await edit(path, body.toString()) : body
        const { 'transfer-encoding': _, 'content-length': __, ...kept } = answer.headers
        response.writeHead(answer.statusCode ?? 502, { ...kept, 'content-length': Buffer.byteLength(sent) }).end(sent)
      })
    })
    onward.on('error', () => response.writeHead(502).end())
    incoming.pipe(onward)
  }

  const server: Server = certificate === undefined ? createServer(handle) : createTlsServer(certificate, handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    origin: `${certificate === undefined ? 'http' : 'https'}://${host}:${port}`,
    port,
    lead(to) {
      target = to
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
