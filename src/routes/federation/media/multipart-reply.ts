import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { writeDisposition } from '../../../core/media/content-disposition.ts'
import type { FoundMedia } from '../../../domain/media/downloads.ts'
import type { MediaServices } from '../../../domain/media/media-services.ts'
import { type RawReply, rawReply } from '../../../http/endpoint.ts'

/** A file for another server: a part with metadata, which is empty so far, then the file (server-server API, "Content repository"). */
export async function multipartReply(media: MediaServices, found: FoundMedia): Promise<RawReply> {
  const { bytes, contentType, fileName } = found
  // Random, so that nobody can upload a file that contains it.
  const boundary = randomBytes(24).toString('hex')
  const head = [
    `--${boundary}\r\nContent-Type: application/json\r\n\r\n{}\r\n`,
    `--${boundary}\r\nContent-Type: ${contentType}\r\n`,
    `Content-Disposition: ${writeDisposition(contentType, fileName)}\r\n\r\n`,
  ].join('')
  const tail = `\r\n--${boundary}--\r\n`
  const content = await media.downloads.open(found)
  return rawReply({
    headers: {
      'content-type': `multipart/mixed; boundary=${boundary}`,
      'content-length': String(head.length + bytes + tail.length),
    },
    body: Readable.from(wrapped(head, content, tail), { objectMode: false }),
  })
}

async function* wrapped(head: string, content: Readable, tail: string): AsyncGenerator<Buffer | string> {
  try {
    yield head
    yield* content as AsyncIterable<Buffer>
    yield tail
  } finally {
    content.destroy()
  }
}
