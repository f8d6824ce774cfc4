import { request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Certificate } from './certificate.ts'

export interface TlsRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** What the other side said it wants to talk to, when connecting. */
  readonly serverName: string | undefined
}

export type TlsHandler = (request: TlsRequest, response: ServerResponse) => void

export interface TlsServer {
  readonly port: number
  readonly requests: TlsRequest[]
  /** What answers from now on. */
  handler: TlsHandler
  /** How many connections were made, good or bad. */
  connections(): number
  close(): Promise<void>
}

/** An HTTPS server on loopback. */
export async function startTlsServer(
  certificate: Certificate,
  handler: TlsHandler,
  host = '127.0.0.1',
  port = 0,
): Promise<TlsServer> {
  const requests: TlsRequest[] = []
  let connections = 0
  const server = createServer(certificate, (message, response) => {
    const chunks: Buffer[] = []
    message.on('data', (chunk: Buffer) => chunks.push(chunk))
    message.on('end', () => {
      const { method = '', url = '', headers } = message
      const serverName = (message.socket as TLSSocket & { servername?: string | false }).servername || undefined
      const request = { method, url, headers, body: Buffer.concat(chunks).toString(), serverName }
      requests.push(request)
      started.handler(request, response)
    })
  })
  server.on('connection', () => {
    connections += 1
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  const started: TlsServer = {
    port: (server.address() as AddressInfo).port,
    requests,
    handler,
    connections: () => connections,
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return started
}

/** Answers with JSON. */
export function json(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): TlsHandler {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }
}

/** Passes on to a server without TLS, as a reverse proxy does. */
export function proxyTo(baseUrl: string): TlsHandler {
  return ({ method, url, headers, body }, response) => {
    const passed = forward(baseUrl + url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.writeHead(502).end())
    passed.end(body)
  }
}
