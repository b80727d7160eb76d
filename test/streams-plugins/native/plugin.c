/* A plugin for tests, compiled with -DVERSION=N: it exports the functions Version and Sum, the source Random and the sink Count. */
#include <node_api.h>
#include <stddef.h>

static napi_value number(napi_env env, double value) {
  napi_value result;
  napi_create_double(env, value, &result);
  return result;
}

static napi_value object_with(napi_env env, const char *name, napi_callback method) {
  napi_value object, function;
  napi_create_object(env, &object);
  napi_create_function(env, name, NAPI_AUTO_LENGTH, method, NULL, &function);
  napi_set_named_property(env, object, name, function);
  return object;
}

static void add_method(napi_env env, napi_value object, const char *name, napi_callback method) {
  napi_value function;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, method, NULL, &function);
  napi_set_named_property(env, object, name, function);
}

static napi_value nothing(napi_env env, napi_callback_info info) { return NULL; }

static napi_value version(napi_env env, napi_callback_info info) { return number(env, VERSION); }

/* Version: a constructor of an object with exec */
static napi_value make_version(napi_env env, napi_callback_info info) { return object_with(env, "exec", version); }

/* Sum: exec(args) adds the numbers of args */
static napi_value sum(napi_env env, napi_callback_info info) {
  size_t argc = 1;
  napi_value args, element;
  uint32_t length = 0;
  double total = 0, each;
  napi_get_cb_info(env, info, &argc, &args, NULL, NULL);
  napi_get_array_length(env, args, &length);
  for (uint32_t i = 0; i < length; i++) {
    napi_get_element(env, args, i, &element);
    if (napi_get_value_double(env, element, &each) != napi_ok) {
      napi_throw_type_error(env, NULL, "sum adds numbers only");
      return NULL;
    }
    total += each;
  }
  return number(env, total);
}

/* Random: open(context, consumer) passes one row to the consumer */
static napi_value open_source(napi_env env, napi_callback_info info) {
  size_t argc = 2;
  napi_value args[2], row, global;
  napi_get_cb_info(env, info, &argc, args, NULL, NULL);
  napi_create_object(env, &row);
  napi_set_named_property(env, row, "version", number(env, VERSION));
  napi_get_global(env, &global);
  napi_call_function(env, global, args[1], 1, &row, NULL);
  return NULL;
}

static napi_value make_random(napi_env env, napi_callback_info info) {
  napi_value source = object_with(env, "open", open_source);
  add_method(env, source, "close", nothing);
  return source;
}

static void export_function(napi_env env, napi_value exports, const char *name, napi_callback callback) {
  napi_value function;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, NULL, &function);
  napi_set_named_property(env, exports, name, function);
}

NAPI_MODULE_INIT() {
  export_function(env, exports, "Version", make_version);
  export_function(env, exports, "Random", make_random);
  napi_set_named_property(env, exports, "Sum", object_with(env, "exec", sum));
  napi_set_named_property(env, exports, "Count", object_with(env, "collect", nothing));
  return exports;
}
