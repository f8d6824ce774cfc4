import type { GuardedClient } from '../http.ts'

/** `unavailable`: the vendor gave no verdict. */
export type CaptchaVerdict = 'valid' | 'invalid' | 'unavailable'

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 65_536

/** Asks a captcha vendor whether a person's answer is valid. The person's address is not sent. */
export async function verifyCaptcha(
  client: Pick<GuardedClient, 'request'>,
  question: { readonly url: string; readonly secret: string; readonly response: string },
): Promise<CaptchaVerdict> {
  const answer = await client.request({
    method: 'POST',
    url: question.url,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ secret: question.secret, response: question.response }).toString(),
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_ANSWER_BYTES,
  })
  if (!answer.ok || answer.status !== 200) return 'unavailable'
  try {
    const { success } = JSON.parse(answer.body.toString('utf8')) as { success?: unknown }
    if (typeof success !== 'boolean') return 'unavailable'
    return success ? 'valid' : 'invalid'
  } catch {
    return 'unavailable'
  }
}
