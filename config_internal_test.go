package oneturn

import (
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

func TestEverySettingReachesTheWorker(t *testing.T) {
	t.Parallel()
	for field := range reflect.TypeFor[Config]().Fields() {
		var c Config
		set(t, reflect.ValueOf(&c).Elem().FieldByIndex(field.Index))
		passed := reflect.ValueOf(c.internal())
		require.False(t, passed.FieldByName(field.Name).IsZero(), field.Name)
		for name, value := range passed.Fields() {
			require.True(t, name.Name == field.Name || value.IsZero() || name.Name == "Tools" && value.Len() == 0, "%s sets %s", field.Name, name.Name)
		}
	}
	for field := range reflect.TypeFor[ToolOptions]().Fields() {
		var o ToolOptions
		set(t, reflect.ValueOf(&o).Elem().FieldByIndex(field.Index))
		require.NotEqual(t, (&ToolOptions{}).declaration(), o.declaration(), field.Name)
	}
}

// set sets a field, or all fields of a structure, to values that are not zero.
func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Struct:
		for _, field := range v.Fields() {
			set(t, field)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[reflect.Type]any{
			reflect.TypeFor[trace.TracerProvider]():  noop.NewTracerProvider(),
			reflect.TypeFor[prometheus.Registerer](): prometheus.NewRegistry(),
		}[v.Type()]))
	default:
		require.Fail(t, "no value for this kind", "%s", v.Kind())
	}
}
