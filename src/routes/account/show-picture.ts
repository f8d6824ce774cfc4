import { ProtocolError } from '../../core/errors.ts'
import { readMxc } from '../../core/mxc.ts'
import { endpoint } from '../../http/endpoint.ts'
import { mediaReply } from '../../http/media-reply.ts'
import { PICTURE_SIZE } from './account-page.ts'
import { visitorOf } from './visitor.ts'

/** The picture of whom this browser is signed in as, as the account page shows it. */
export const showPicture = endpoint(
  'GET /_hearth/account/picture',
  { auth: 'none', limited: 'media' },
  async (request, services) => {
    const { session } = await visitorOf(request, services)
    const { media, profiles } = services
    const url = session && (await profiles.getField(session.userId, 'avatar_url'))
    const mxc = typeof url === 'string' ? readMxc(url) : undefined
    if (session === undefined || mxc === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no picture.')
    const { userId: fetchFor } = session
    const { signal } = request
    const found = await media.downloads.find({ mxc, fetchFor, isAnonymous: false, timeoutMs: undefined, signal })
    const size = { width: PICTURE_SIZE, height: PICTURE_SIZE, method: 'crop', isAnimated: false } as const
    return mediaReply(request, media, await media.thumbnails.of(found, size), false)
  },
)
