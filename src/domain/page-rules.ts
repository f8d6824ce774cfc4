import type { Errcode } from '../core/errors.ts'
import type { PageRules } from '../core/page-template.ts'

/** What a page's template may use. Every template may also use `brand` and `server_name`. */
interface PageKind extends PageRules {
  /** The errors that the page has its own words for when it shows a form again: error codes in small letters, such as `m_forbidden`. */
  readonly problems?: readonly Errcode[]
}

/** How a form is sent, and the error of the last attempt: in words, and again if the page has no words of its own for its code. */
const FORM = ['form', 'problem', 'other_problem'] as const
const LINK = ['email', 'msisdn', 'errcode'] as const
/** What the account page says has just been done. */
export const ACCOUNT_NEWS = [
  'password_changed',
  'session_ended',
  'name_changed',
  'picture_changed',
  'picture_removed',
  'email_added',
  'phone_added',
  'address_removed',
  'keys_approved',
] as const
/** What is being added to an archive of a person's data. */
const ARCHIVE_PARTS = ['account', 'keys', 'events', 'media'] as const
const VISITOR_FORM = { markup: ['form'], needs: ['form'] } as const
const SSO_FAILURE = { values: ['provider', 'again', 'client', 'errcode'] } as const satisfies PageKind

/** The web pages, by the names of their templates. */
export const PAGES = {
  'welcome.page': { values: ['address', 'version', 'is_open'] },
  'welcome-identity.page': { values: ['address', 'version', 'policies', 'name', 'link'] },
  'policy.page': {
    values: ['name', 'version', 'text', 'languages', 'language', 'link'],
    markup: ['text'],
    needs: ['text'],
  },
  'link-confirmed.page': { values: ['email', 'msisdn', 'next_link'], needs: ['next_link'] },
  'link-wrong.page': { values: LINK },
  'link-unknown.page': { values: LINK },
  'link-expired.page': { values: LINK },
  'new-password.page': { values: ['form'], markup: ['form'], needs: ['form'] },
  'unsubscribe.page': { values: ['form', 'email'], markup: ['form'], needs: ['form'] },
  'unsubscribed.page': { values: ['email'] },
  'unsubscribe-unknown.page': { values: [] },
  'fallback-dummy.page': { values: FORM, markup: ['form'], needs: ['form'] },
  'fallback-password.page': {
    values: [...FORM, 'user_id', 'm_forbidden', 'm_limit_exceeded'],
    markup: ['form'],
    needs: ['form'],
    fields: ['password'],
    problems: ['M_FORBIDDEN', 'M_LIMIT_EXCEEDED'],
  },
  'fallback-registration-token.page': {
    values: [...FORM, 'm_unauthorized', 'm_limit_exceeded'],
    markup: ['form'],
    needs: ['form'],
    fields: ['token'],
    problems: ['M_UNAUTHORIZED', 'M_LIMIT_EXCEEDED'],
  },
  'fallback-terms.page': {
    values: [...FORM, 'policies', 'version', 'texts', 'name', 'language', 'link'],
    markup: ['form'],
    needs: ['form', 'policies', 'texts', 'link'],
  },
  'fallback-captcha.page': {
    values: [...FORM, 'widget', 'm_captcha_needed', 'm_captcha_invalid'],
    markup: ['form', 'widget'],
    needs: ['form', 'widget'],
    problems: ['M_CAPTCHA_NEEDED', 'M_CAPTCHA_INVALID'],
  },
  'fallback-email.page': {
    values: [...FORM, 'email', 'm_invalid_param', 'm_threepid_in_use', 'm_threepid_not_found', 'm_threepid_denied'],
    markup: ['form'],
    needs: ['form'],
    fields: ['email'],
    problems: ['M_INVALID_PARAM', 'M_THREEPID_IN_USE', 'M_THREEPID_NOT_FOUND', 'M_THREEPID_DENIED'],
  },
  'fallback-email-sent.page': {
    values: [...FORM, 'email', 'again', 'm_unauthorized'],
    markup: ['form'],
    needs: ['form', 'again'],
    problems: ['M_UNAUTHORIZED'],
  },
  'fallback-msisdn.page': {
    values: [...FORM, 'number', 'm_invalid_param', 'm_threepid_in_use', 'm_threepid_not_found', 'm_threepid_denied'],
    markup: ['form'],
    needs: ['form'],
    fields: ['number'],
    problems: ['M_INVALID_PARAM', 'M_THREEPID_IN_USE', 'M_THREEPID_NOT_FOUND', 'M_THREEPID_DENIED'],
  },
  'fallback-msisdn-sent.page': {
    values: [...FORM, 'number', 'again', 'm_token_incorrect', 'm_session_expired'],
    markup: ['form'],
    needs: ['form', 'again'],
    fields: ['token'],
    problems: ['M_TOKEN_INCORRECT', 'M_SESSION_EXPIRED'],
  },
  'fallback-done.page': { values: [] },
  'fallback-lost.page': { values: [] },
  'sso-choose.page': {
    values: ['client', 'choices', 'name', 'initial', 'link'],
    needs: ['choices', 'name', 'link'],
  },
  'sso-continue.page': {
    values: ['is_new', 'client', 'client_address', 'user_id', 'link'],
    needs: ['client', 'client_address', 'user_id', 'link'],
  },
  'sso-name.page': {
    values: [...FORM, 'provider', 'display_name', 'username', 'm_user_in_use', 'm_invalid_username', 'm_exclusive'],
    markup: ['form'],
    needs: ['form'],
    fields: ['username'],
    problems: ['M_USER_IN_USE', 'M_INVALID_USERNAME', 'M_EXCLUSIVE'],
  },
  'sso-prove.page': {
    values: [
      ...['user_id', 'choices', 'name', 'initial', 'link', 'removes_devices', 'changes_password', 'deactivates'],
      ...['adds_address', 'replaces_keys', 'signs_in_elsewhere', 'does_else'],
    ],
    needs: ['user_id', 'choices', 'name', 'link'],
  },
  'sso-unknown-provider.page': SSO_FAILURE,
  'sso-bad-address.page': SSO_FAILURE,
  'sso-ended.page': SSO_FAILURE,
  'sso-cancelled.page': SSO_FAILURE,
  'sso-unreachable.page': SSO_FAILURE,
  'sso-refused.page': SSO_FAILURE,
  'sso-deactivated.page': SSO_FAILURE,
  'sso-no-account.page': SSO_FAILURE,
  'sso-full.page': SSO_FAILURE,
  'sso-other-person.page': SSO_FAILURE,
  'sso-not-again.page': SSO_FAILURE,
  'oauth-consent.page': {
    values: [
      ...['form', 'host', 'name', 'user_id', 'returns_to', 'device', 'replaces', 'administers', 'policy', 'terms'],
      'other_account',
    ],
    ...VISITOR_FORM,
    needs: ['form', 'host', 'user_id', 'returns_to'],
  },
  'oauth-return.page': { values: ['client', 'link'], needs: ['link'] },
  'oauth-refused.page': { values: ['reason'] },
  'oauth-ended.page': { values: [] },
  'error.page': { values: ['problem'] },
  'account-form-expired.page': { values: [] },
  'console-refused.page': { values: ['user_id'] },
  'account-sign-in.page': {
    values: [
      ...FORM,
      ...['username', 'choices', 'name', 'initial', 'link', 'sign_up', 'reset', 'is_again'],
      ...['m_forbidden', 'm_limit_exceeded', 'm_user_deactivated', 'm_user_locked'],
    ],
    ...VISITOR_FORM,
    needs: ['form', 'choices', 'link'],
    fields: ['username', 'password'],
    problems: ['M_FORBIDDEN', 'M_LIMIT_EXCEEDED', 'M_USER_DEACTIVATED', 'M_USER_LOCKED'],
  },
  'account-token.page': { values: ['form', 'name'], ...VISITOR_FORM, needs: ['form', 'name'] },
  'account-sign-up.page': {
    values: [...FORM, 'username', 'min_length', 'm_user_in_use', 'm_invalid_username', 'm_exclusive'],
    ...VISITOR_FORM,
    fields: ['username', 'password', 'repeated'],
    problems: ['M_USER_IN_USE', 'M_INVALID_USERNAME', 'M_EXCLUSIVE'],
  },
  'account-closed.page': { values: [] },
  'account-new-password.page': {
    values: [...FORM, 'min_length'],
    ...VISITOR_FORM,
    fields: ['password', 'repeated'],
  },
  'account-link.page': { values: ['form', 'user_code', 'is_wrong'], ...VISITOR_FORM, fields: ['user_code'] },
  'account-link-confirm.page': {
    values: ['form', 'host', 'name', 'user_id', 'device', 'replaces', 'administers', 'ip', 'agent', 'time'],
    ...VISITOR_FORM,
    needs: ['form', 'host', 'user_id'],
  },
  'account-link-done.page': { values: ['is_allowed'] },
  'account.page': {
    values: [
      ...['form', 'problem', 'sign_out', 'user_id', 'display_name', 'has_password', 'can_link', 'can_add_phone'],
      ...['picture', 'picture_form', 'remove_picture'],
      ...['sessions', 'name', 'device_id', 'seen', 'ip', 'tells_of_logins', 'addresses', 'address', 'shown'],
      ...['done', ...ACCOUNT_NEWS],
    ],
    markup: ['form', 'sign_out', 'picture_form', 'remove_picture'],
    needs: ['form', 'sign_out', 'picture_form', 'remove_picture', 'sessions', 'device_id'],
    fields: ['display_name'],
  },
  'account-session.page': {
    values: [...['form', 'is_ending', 'user_id', 'device_id', 'name', 'host', 'since', 'seen', 'ip', 'agent']],
    ...VISITOR_FORM,
    needs: ['form', 'name', 'device_id'],
  },
  'account-keys.page': { values: ['form', 'user_id'], ...VISITOR_FORM },
  'account-password.page': {
    values: [...FORM, 'user_id', 'min_length', 'm_forbidden'],
    ...VISITOR_FORM,
    fields: ['password', 'new_password'],
    problems: ['M_FORBIDDEN'],
  },
  'account-deactivate.page': {
    values: ['form', 'problem', 'user_id'],
    ...VISITOR_FORM,
    needs: ['form', 'user_id'],
    fields: ['confirmation'],
  },
  'account-deactivated.page': { values: [] },
  'account-data.page': {
    values: [
      'form',
      'problem',
      'user_id',
      'none',
      'ready',
      'being_made',
      'late',
      'size',
      'until',
      'remove',
      ...ARCHIVE_PARTS,
    ],
    markup: ['form', 'remove'],
    needs: ['form', 'remove', 'size', 'until'],
  },
  'account-email.page': {
    values: [...FORM, 'user_id', 'email', 'sent_to'],
    ...VISITOR_FORM,
    needs: ['form', 'sent_to'],
    fields: ['email'],
  },
  'account-phone.page': {
    values: [
      ...[...FORM, 'user_id', 'number', 'sent_to', 'm_invalid_param', 'm_threepid_in_use', 'm_threepid_denied'],
      ...['m_token_incorrect', 'm_session_expired'],
    ],
    ...VISITOR_FORM,
    needs: ['form', 'sent_to'],
    fields: ['number', 'token'],
    problems: ['M_INVALID_PARAM', 'M_THREEPID_IN_USE', 'M_THREEPID_DENIED', 'M_TOKEN_INCORRECT', 'M_SESSION_EXPIRED'],
  },
  'account-address.page': { values: ['form', 'user_id', 'address'], ...VISITOR_FORM, needs: ['form', 'address'] },
} as const satisfies Readonly<Record<`${string}.page`, PageKind>>

export type PageName = keyof typeof PAGES
export type PageValue<Name extends PageName> = (typeof PAGES)[Name]['values'][number]
export const COMMON_VALUES = ['brand', 'server_name'] as const

export function kindOf(name: PageName): PageKind {
  return PAGES[name]
}
