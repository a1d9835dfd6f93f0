/*
 * A provider of mod_cache that keeps answers in memory, one cache for the threads of each process (see cache.h).
 *
 *     CacheEnable mem /
 *     StmCacheBytes 16777216          bound on memory
 *     StmCacheEntries 1024            bound on entries
 *     StmCachePolicy LRU              or GDSF, where the cost of an entry is the time that it took to make
 *     StmCacheCleanUp deferred        or commit (with transactions only), or inside
 *     SetHandler stm-cache-status     the figures of the answering process as JSON
 *
 * mod_cache decides what may be stored and how long it is fresh. Answers with Vary are not stored.
 */
#include "cache.h"

#include <httpd.h> /* first: the others need it */
#include <ap_provider.h>
#include <apr_strings.h>
#include <http_config.h>
#include <http_log.h>
#include <http_protocol.h>
#include <mod_cache.h>

module AP_MODULE_DECLARE_DATA stm_cache_module;
APLOG_USE_MODULE(stm_cache);

/* An answer that is being stored, or an entry that is being read. */
struct stm_object {
    const char *key;
    cache_object_t base; /* what mod_cache sees */
    apr_array_header_t *body;
    apr_size_t body_bytes;
    struct cache_entry *entry;
    const char *headers, *content; /* within the entry */
    apr_size_t content_bytes;
    cache_info info;
};

/* The beginning of an entry's content: header lines and the body follow. */
struct stored {
    cache_info info;
    apr_size_t request_lines, response_lines; /* pairs of strings that end with 0 */
    apr_size_t header_bytes;
};

static struct cache_options options = {16 << 20, 1024, CACHE_LRU, CACHE_DEFERRED};
static struct cache *cache;

/* --- storing */

static int create_entity(cache_handle_t *handle, request_rec *request, const char *key, apr_off_t bytes,
                         apr_bucket_brigade *answer)
{
    struct stm_object *object;

    (void)answer;
    if (bytes > (apr_off_t)options.bytes)
        return DECLINED;
    object = apr_pcalloc(request->pool, sizeof *object);
    object->key = apr_pstrdup(request->pool, key);
    object->body = apr_array_make(request->pool, 4, sizeof(struct iovec));
    object->base.key = object->key;
    object->base.vobj = object;
    handle->cache_obj = &object->base;
    return OK;
}

static apr_status_t store_headers(cache_handle_t *handle, request_rec *request, cache_info *info)
{
    struct stm_object *object = handle->cache_obj->vobj;

    /* an entry in use does not change; and one entry for each URL cannot hold several variants */
    if (object->entry != NULL || apr_table_get(request->headers_out, "Vary") != NULL)
        return APR_ENOTIMPL;
    object->info = *info;
    handle->cache_obj->info = *info;
    handle->req_hdrs = ap_cache_cacheable_headers_in(request);
    handle->resp_hdrs = ap_cache_cacheable_headers_out(request);
    return APR_SUCCESS;
}

static apr_status_t store_body(cache_handle_t *handle, request_rec *request, apr_bucket_brigade *in,
                               apr_bucket_brigade *out)
{
    struct stm_object *object = handle->cache_obj->vobj;

    while (!APR_BRIGADE_EMPTY(in)) {
        apr_bucket *bucket = APR_BRIGADE_FIRST(in);
        const char *data;
        apr_size_t bytes;
        struct iovec *part;
        apr_status_t status;

        if (APR_BUCKET_IS_METADATA(bucket)) {
            APR_BUCKET_REMOVE(bucket);
            APR_BRIGADE_INSERT_TAIL(out, bucket);
            continue;
        }
        status = apr_bucket_read(bucket, &data, &bytes, APR_BLOCK_READ);
        if (status != APR_SUCCESS)
            return status;
        APR_BUCKET_REMOVE(bucket);
        APR_BRIGADE_INSERT_TAIL(out, bucket);
        object->body_bytes += bytes;
        if (object->body_bytes > options.bytes)
            return APR_ENOSPC;
        part = apr_array_push(object->body);
        part->iov_base = apr_pmemdup(request->pool, data, bytes);
        part->iov_len = bytes;
    }
    return APR_SUCCESS;
}

static int add_bytes(void *sum, const char *name, const char *value)
{
    *(apr_size_t *)sum += strlen(name) + strlen(value) + 2;
    return 1;
}

static int add_line(void *end, const char *name, const char *value)
{
    char **at = end;

    *at = apr_cpystrn(*at, name, strlen(name) + 1) + 1;
    *at = apr_cpystrn(*at, value, strlen(value) + 1) + 1;
    return 1;
}

static apr_status_t commit_entity(cache_handle_t *handle, request_rec *request)
{
    struct stm_object *object = handle->cache_obj->vobj;
    struct stored *stored;
    struct cache_entry *entry;
    apr_size_t header_bytes = 0;
    char *end;

    apr_table_do(add_bytes, &header_bytes, handle->req_hdrs, NULL);
    apr_table_do(add_bytes, &header_bytes, handle->resp_hdrs, NULL);
    entry = cache_entry_create(cache, object->key, sizeof *stored + header_bytes + object->body_bytes,
                               (double)(apr_time_now() - request->request_time));
    if (entry == NULL)
        return APR_ENOMEM;
    stored = cache_entry_content(entry);
    stored->info = object->info;
    stored->request_lines = (apr_size_t)apr_table_elts(handle->req_hdrs)->nelts;
    stored->response_lines = (apr_size_t)apr_table_elts(handle->resp_hdrs)->nelts;
    stored->header_bytes = header_bytes;
    end = (char *)(stored + 1);
    apr_table_do(add_line, &end, handle->req_hdrs, NULL);
    apr_table_do(add_line, &end, handle->resp_hdrs, NULL);
    for (int at = 0; at < object->body->nelts; at++) {
        const struct iovec *part = &APR_ARRAY_IDX(object->body, at, struct iovec);
        memcpy(end, part->iov_base, part->iov_len);
        end += part->iov_len;
    }
    cache_put(cache, entry);
    cache_release(cache, entry);
    return APR_SUCCESS;
}

/* --- reading */

static apr_status_t release(void *entry)
{
    cache_release(cache, entry);
    return APR_SUCCESS;
}

static int open_entity(cache_handle_t *handle, request_rec *request, const char *key)
{
    struct cache_entry *entry = cache_get(cache, key);
    struct stm_object *object;
    const struct stored *stored;

    if (entry == NULL)
        return DECLINED;
    /* httpd keeps the request's pool until its answer has been sent */
    apr_pool_cleanup_register(request->pool, entry, release, apr_pool_cleanup_null);
    stored = cache_entry_content(entry);
    object = apr_pcalloc(request->pool, sizeof *object);
    object->key = apr_pstrdup(request->pool, key);
    object->entry = entry;
    object->headers = (const char *)(stored + 1);
    object->content = object->headers + stored->header_bytes;
    object->content_bytes = cache_entry_bytes(entry) - sizeof *stored - stored->header_bytes;
    object->base.key = object->key;
    object->base.vobj = object;
    object->base.info = stored->info;
    handle->cache_obj = &object->base;
    return OK;
}

static apr_table_t *read_lines(apr_pool_t *pool, const char **at, apr_size_t lines)
{
    apr_table_t *table = apr_table_make(pool, (int)lines);

    while (lines-- > 0) {
        const char *name = *at, *value = name + strlen(name) + 1;
        *at = value + strlen(value) + 1;
        apr_table_addn(table, name, value);
    }
    return table;
}

static apr_status_t recall_headers(cache_handle_t *handle, request_rec *request)
{
    struct stm_object *object = handle->cache_obj->vobj;
    const struct stored *stored = cache_entry_content(object->entry);
    const char *at = object->headers;

    handle->req_hdrs = read_lines(request->pool, &at, stored->request_lines);
    handle->resp_hdrs = read_lines(request->pool, &at, stored->response_lines);
    return APR_SUCCESS;
}

static apr_status_t recall_body(cache_handle_t *handle, apr_pool_t *pool, apr_bucket_brigade *answer)
{
    struct stm_object *object = handle->cache_obj->vobj;

    (void)pool;
    if (object->content_bytes > 0)
        APR_BRIGADE_INSERT_TAIL(
            answer, apr_bucket_immortal_create(object->content, object->content_bytes, answer->bucket_alloc));
    return APR_SUCCESS;
}

/* --- removing */

static int remove_entity(cache_handle_t *handle)
{
    handle->cache_obj = NULL;
    return OK;
}

static int remove_url(cache_handle_t *handle, request_rec *request)
{
    (void)request;
    if (handle->cache_obj != NULL)
        cache_remove(cache, handle->cache_obj->key);
    return OK;
}

static apr_status_t invalidate_entity(cache_handle_t *handle, request_rec *request)
{
    return remove_url(handle, request) == OK ? APR_SUCCESS : APR_EGENERAL;
}

static const cache_provider provider = {
    remove_entity, store_headers, store_body,    recall_headers,    recall_body, create_entity,
    open_entity,   remove_url,    commit_entity, invalidate_entity,
};

/* --- the module */

static int status_handler(request_rec *request)
{
    struct cache_figures figures;

    if (request->handler == NULL || strcmp(request->handler, "stm-cache-status") != 0)
        return DECLINED;
    figures = cache_figures_of(cache);
    ap_set_content_type(request, "application/json");
    apr_table_setn(request->headers_out, "Cache-Control", "no-store");
    ap_rprintf(request,
               "{\"hits\": %" APR_UINT64_T_FMT ", \"misses\": %" APR_UINT64_T_FMT ", \"stored\": %" APR_UINT64_T_FMT
               ", \"refused\": %" APR_UINT64_T_FMT ", \"evicted\": %" APR_UINT64_T_FMT ", \"live\": %" APR_UINT64_T_FMT
               ", \"bytes\": %" APR_UINT64_T_FMT ", \"entries\": %" APR_UINT64_T_FMT "}\n",
               figures.hits, figures.misses, figures.stored, figures.refused, figures.evicted, figures.live,
               figures.bytes, figures.entries);
    return OK;
}

static void begin_process(apr_pool_t *pool, server_rec *server)
{
    (void)pool;
    cache = cache_create(&options);
    if (cache == NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, "stm_cache: no memory for the cache");
        exit(APEXIT_CHILDFATAL);
    }
}

static const char *set_number(cmd_parms *command, void *unused, const char *text)
{
    char *end;
    apr_int64_t number = apr_strtoi64(text, &end, 10);

    (void)unused;
    if (*end != '\0' || number < 1)
        return apr_psprintf(command->pool, "%s: %s is no number of 1 or more", command->cmd->name, text);
    *(size_t *)command->info = (size_t)number;
    return NULL;
}

static const char *set_policy(cmd_parms *command, void *unused, const char *text)
{
    (void)unused;
    if (ap_cstr_casecmp(text, "LRU") != 0 && ap_cstr_casecmp(text, "GDSF") != 0)
        return apr_psprintf(command->pool, "StmCachePolicy: %s is neither LRU nor GDSF", text);
    options.policy = ap_cstr_casecmp(text, "GDSF") == 0 ? CACHE_GDSF : CACHE_LRU;
    return NULL;
}

static const char *set_cleanup(cmd_parms *command, void *unused, const char *text)
{
    (void)unused;
    if (strcmp(text, "deferred") == 0)
        options.cleanup = CACHE_DEFERRED;
    else if (strcmp(text, "inside") == 0)
        options.cleanup = CACHE_INSIDE;
#ifdef CACHE_TM
    else if (strcmp(text, "commit") == 0)
        options.cleanup = CACHE_COMMIT;
    else
        return apr_psprintf(command->pool, "StmCacheCleanUp: %s is none of deferred, commit, inside", text);
#else
    else
        return apr_psprintf(command->pool, "StmCacheCleanUp: %s is none of deferred, inside (built with a lock)", text);
#endif
    return NULL;
}

static const command_rec commands[] = {
    AP_INIT_TAKE1("StmCacheBytes", set_number, &options.bytes, RSRC_CONF, "bound on the memory of all entries, bytes"),
    AP_INIT_TAKE1("StmCacheEntries", set_number, &options.entries, RSRC_CONF, "bound on the number of entries"),
    AP_INIT_TAKE1("StmCachePolicy", set_policy, NULL, RSRC_CONF, "LRU or GDSF"),
    AP_INIT_TAKE1("StmCacheCleanUp", set_cleanup, NULL, RSRC_CONF, "deferred, commit or inside"),
    {NULL},
};

static void register_all(apr_pool_t *pool)
{
    ap_register_provider(pool, CACHE_PROVIDER_GROUP, "mem", "0", &provider);
    ap_hook_child_init(begin_process, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(status_handler, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA stm_cache_module = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, commands, register_all, AP_MODULE_FLAG_NONE,
};
