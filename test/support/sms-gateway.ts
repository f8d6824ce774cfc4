import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface GatewayRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface FakeGateway {
  readonly url: string
  readonly requests: GatewayRequest[]
  /** What it answers from now on; undefined: nothing, ever. */
  answer: { readonly status: number; readonly body: string; readonly headers?: Record<string, string> } | undefined
  close(): Promise<void>
}

/** A gateway for text messages on loopback. */
export async function startGateway(): Promise<FakeGateway> {
  const requests: GatewayRequest[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      const { answer } = gateway
      if (answer !== undefined) response.writeHead(answer.status, answer.headers).end(answer.body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const gateway: FakeGateway = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: { status: 200, body: '{}' },
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  return gateway
}
