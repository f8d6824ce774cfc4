import type { ProtocolError } from '../../core/errors.ts'
import { waysOf } from '../../domain/new-logins/notes.ts'
import { ACCOUNT_NEWS } from '../../domain/page-rules.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import type { EndpointRequest } from '../../http/request.ts'
import { goTo } from '../oauth/answer.ts'
import { pageReply } from '../web/page.ts'
import { canAddPhone } from './addresses/phone-page.ts'
import { shownAddress, shownTime } from './shown.ts'
import type { Owner } from './signed-in.ts'
import { uploadForm, visitorForm } from './visitor.ts'

export type AccountNews = (typeof ACCOUNT_NEWS)[number]

const ACCOUNT = '/_hearth/account'
/** Pixels. */
export const PICTURE_SIZE = 96

/** Back to the account page, which says what was done. */
export const doneWith = (news: AccountNews, cookies?: readonly string[]): RawReply =>
  goTo(`${ACCOUNT}?${new URLSearchParams({ done: news })}`, cookies)

/** The account page. */
export async function accountPage(
  services: Services,
  reader: Pick<EndpointRequest, 'acceptLanguage'>,
  owner: Owner,
  { done, problem }: { readonly done?: string | undefined; readonly problem?: ProtocolError | undefined } = {},
): Promise<RawReply> {
  const { oauth, profiles, contacts } = services
  const { userNid, userId } = owner.session
  const [profile, sessions, addresses, hasPassword] = await Promise.all([
    profiles.get(userId),
    oauth.ownAccount.sessions(userNid),
    contacts.list(userNid),
    oauth.ownAccount.hasPassword(userNid),
  ])
  const news = ACCOUNT_NEWS.find((each) => each === done)
  const { displayname, avatar_url: avatar } = profile
  const hasPicture = typeof avatar === 'string' && avatar !== ''
  return pageReply(
    services,
    'account.page',
    {
      form: visitorForm(owner, {}, `${ACCOUNT}/profile`),
      sign_out: visitorForm(owner, {}, `${ACCOUNT}/sign-out`),
      picture_form: uploadForm(owner, `${ACCOUNT}/picture`),
      remove_picture: visitorForm(owner, {}, `${ACCOUNT}/picture/remove`),
      // Another picture has another address, so that no browser shows the one before.
      picture: hasPicture ? `${ACCOUNT}/picture?${new URLSearchParams({ of: avatar })}` : '',
      user_id: userId,
      display_name: typeof displayname === 'string' ? displayname : '',
      has_password: hasPassword ? 'yes' : '',
      can_add_phone: canAddPhone(services.config) ? 'yes' : '',
      can_link: oauth.isServed ? 'yes' : '',
      sessions: sessions.map(({ deviceId, name, seenAt, ip }) => ({
        name,
        device_id: deviceId,
        seen: seenAt === undefined ? '' : shownTime(seenAt, reader),
        ip: ip ?? '',
      })),
      tells_of_logins:
        waysOf(services.config).byMail && addresses.some(({ medium }) => medium === 'email') ? 'yes' : '',
      addresses: addresses.map((each) => ({ address: each.address, shown: shownAddress(each) })),
      ...(news !== undefined && { done: 'yes', [news]: 'yes' }),
    },
    { acceptLanguage: reader.acceptLanguage, problem, status: problem?.status, isSecret: true, hasImages: true },
  )
}
