import { decodeQuotedPrintable, type SmtpSink } from '../../support/smtp.ts'
import { waitUntil } from '../../support/wait.ts'

/** The first mail after so many. */
export const mailAfter = (smtp: SmtpSink, before: number): Promise<string> =>
  waitUntil('a mail', () => smtp.mails.length > before && decodeQuotedPrintable(smtp.mails[before]?.raw ?? ''))

/** The link in the first mail after so many, at the place where the server is reached. */
export async function linkIn(smtp: SmtpSink, before: number, origin: string): Promise<string> {
  const found = /https?:\/\/\S+(?:submitToken|unsubscribe)\?[^\s>"]+/.exec(await mailAfter(smtp, before))?.[0]
  const { pathname, search } = new URL(found ?? 'nothing:')
  return origin + pathname + search
}

/** The page in a mail. */
export const htmlOf = (mail: string): string => mail.slice(mail.indexOf('<!doctype html>'), mail.indexOf('</html>') + 7)
