import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A captcha vendor's verification server: one answer holds, and each only once. */
export interface CaptchaVendorServer {
  readonly url: string
  /** What it was asked, in order. */
  readonly asked: URLSearchParams[]
  /** What it answers instead, until it is undefined again. */
  broken: { readonly status: number; readonly body: string } | undefined
  close(): Promise<void>
}

export const GOOD_ANSWER = 'good-answer'

export async function startCaptchaVendor(secret: string): Promise<CaptchaVendorServer> {
  const asked: URLSearchParams[] = []
  const spent = new Set<string>()
  const vendor: { broken: CaptchaVendorServer['broken'] } = { broken: undefined }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const question = new URLSearchParams(Buffer.concat(chunks).toString())
      asked.push(question)
      const answer = question.get('response') ?? ''
      const success = question.get('secret') === secret && answer.startsWith(GOOD_ANSWER) && !spent.has(answer)
      spent.add(answer)
      response.writeHead(vendor.broken?.status ?? 200, { 'content-type': 'application/json' })
      response.end(vendor.broken?.body ?? JSON.stringify({ success, ...(!success && { 'error-codes': ['wrong'] }) }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.assign(vendor, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/siteverify`,
    asked,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  })
}
